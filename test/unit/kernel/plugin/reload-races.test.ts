import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isAlive } from "../../../support/is-alive.ts";
import { callOf, entryFor, FIXTURES, never, openHost, tempDirectory } from "./open-host.ts";

/** A copy of the echo plugin that writes down the number of each process that it is started as. */
async function countedEcho() {
  const parent = await tempDirectory();
  const directory = join(parent, "echo");
  await cp(join(FIXTURES, "echo"), directory, { recursive: true });
  await cp(join(FIXTURES, "wire.mjs"), join(parent, "wire.mjs"));
  const pids = join(parent, "pids");
  const main = join(directory, "main.mjs");
  const note = `import { appendFileSync } from "node:fs";
appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n");\n`;
  await writeFile(main, note + (await readFile(main, "utf8")));
  const entry = entryFor("echo", { launch: { kind: "path", directory } });
  const started = async () => (await readFile(pids, "utf8").catch(() => "")).trim().split("\n");
  return { entry, started };
}

describe("a reload at a bad moment", () => {
  test("[E-064] two reloads at once of a plugin that is new leave one process", async () => {
    const { entry, started } = await countedEcho();
    const { host } = await openHost({});
    const config = { entries: [entry], secretEnvNames: new Set<string>() };
    const statuses = await Promise.all([host.reload("echo", config), host.reload("echo", config)]);
    expect(statuses.at(-1)).toMatchObject({ state: "connected" });
    await host.call("echo", callOf("echo", { text: "hi" }), never());
    const alive = (await started()).map(Number).filter(isAlive);
    expect(alive).toEqual([host.status()[0]?.pid]);
  });

  test("[E-064] of two reloads at once the later configuration counts", async () => {
    const { entry } = await countedEcho();
    let first: (() => void) | undefined;
    const held = new Promise<boolean>((resolve) => {
      first = () => resolve(true);
    });
    let asked = 0;
    const { host } = await openHost({
      workspaceStillTrusted: async () => {
        asked += 1;
        return asked === 1 ? held : true;
      },
    });
    const withEnv = (value: string, layer: "user" | "workspace") => ({
      entries: [{ ...entry, layer, env: { WHICH: value } }],
      secretEnvNames: new Set<string>(),
    });
    const one = host.reload("echo", withEnv("old", "workspace"));
    const two = host.reload("echo", withEnv("new", "user"));
    setImmediate(() => first?.());
    await Promise.all([one, two]);
    const { content } = await host.call("echo", callOf("describe_process"), never());
    expect(content).toContain("WHICH");
    expect(host.status()[0]).toMatchObject({ source: "user" });
  });

  test("[E-064] a plugin that is taken away while it is being added is gone", async () => {
    const { entry, started } = await countedEcho();
    const { host } = await openHost({});
    const secretEnvNames = new Set<string>();
    await Promise.allSettled([
      host.reload("echo", { entries: [entry], secretEnvNames }),
      host.reload("echo", { entries: [], secretEnvNames }),
    ]);
    expect(host.status()).toEqual([]);
    expect((await started()).filter(Boolean).map(Number).filter(isAlive)).toEqual([]);
  });

  test("[E-065] a reload that is under way when the kernel closes starts nothing any more", async () => {
    const { entry, started } = await countedEcho();
    let go: (() => void) | undefined;
    const held = new Promise<boolean>((resolve) => {
      go = () => resolve(true);
    });
    const { host } = await openHost({ workspaceStillTrusted: () => held });
    const layer = "workspace" as const;
    const config = { entries: [{ ...entry, layer }], secretEnvNames: new Set<string>() };
    const reloading = host.reload("echo", config).catch(() => undefined);
    const closed = host.close();
    go?.();
    await Promise.all([reloading, closed]);
    expect((await started()).filter(Boolean).map(Number).filter(isAlive)).toEqual([]);
  });
});
