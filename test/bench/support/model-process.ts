import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import type { ServedRequest } from "./scenario.ts";

/** The scripted model in a process of its own. */
export interface ModelProcess {
  readonly pid: number;
  readonly baseUrl: string;
  /** The requests since the last time this was asked. */
  takeServed(): Promise<ServedRequest[]>;
  close(): Promise<void>;
}

export async function startModelProcess(workspace: string, thinkMs = 0): Promise<ModelProcess> {
  const directory = await mkdtemp(join(tmpdir(), "cookie-bench-model-"));
  const outfile = join(directory, "scripted-model.mjs");
  const entry = join(import.meta.dirname, "../scripted-model.ts");
  await build({ entryPoints: [entry], outfile, bundle: true, platform: "node", format: "esm" });
  const child = spawn(process.execPath, [outfile, workspace, String(thinkMs)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const port = await firstLine(child);
  const origin = `http://127.0.0.1:${port}`;
  return {
    pid: child.pid ?? 0,
    baseUrl: origin,
    takeServed: async () => (await (await fetch(`${origin}/served`)).json()) as ServedRequest[],
    async close() {
      child.stdin?.end();
      if (child.exitCode === null) await once(child, "exit");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("the scripted model has no output");
  const [chunk] = (await once(child.stdout, "data")) as [Buffer];
  return chunk.toString("utf8").trim();
}
