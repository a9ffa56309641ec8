import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer, type Wire } from "../../support/model-server.ts";
import { runCookie } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

/** Tells, as the last line of stderr, whether the process has loaded the runtime's `fetch`. */
const REPORT = `process.on("exit", () => {
  const loaded = process.moduleLoadList.some((name) => name.includes("undici"));
  process.stderr.write("fetch loaded: " + loaded + "\\n");
})`;

test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
  "a run over %s does not load the runtime's fetch, which costs more than all else at its start",
  async (wire) => {
    const project = await useProject();
    const server = await startModelServer({ text: "hello" });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server, { wire }));

    const run = await runCookie(project, ["run", "hi"], {
      env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(REPORT)}` },
    });

    expect(run).toEqual({
      exitCode: 0,
      signal: null,
      stdout: "hello\n",
      stderr: "fetch loaded: false\n",
    });
  },
);

/** Writes the address of every module that the process loads into the file that `LOADED` names. */
const HOOK = `import { appendFileSync } from "node:fs";
export async function load(url, context, next) {
  appendFileSync(process.env.LOADED, url + "\\n");
  return next(url, context);
}`;
const REGISTER = `import { register } from "node:module";
register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOK)}`)});`;

/** Words that stand in what only attachments, media, host services, internal agents and a daemon need. */
const SELDOM = [
  "the checksum of a chunk is wrong",
  "its cross-references are not where it says",
  "it has a second name",
  "cannot be attached: ",
  "newer ones took its place",
  "does not declare the action",
  "the configuration has no section",
  "You decide whether one tool call of a coding agent",
  "the answer holds something other than text",
  "Invalid WebSocket frame",
  "the daemon refused the token",
  "perhaps by another daemon",
];

test("a run with tools that attach nothing loads nothing of attachments, host services, internal agents and sockets", async () => {
  const project = await useProject();
  const server = await startModelServer(
    { calls: [{ name: "read", arguments: { filePath: "notes.txt" } }] },
    { text: "done" },
  );
  onTestFinished(() => server.close());
  await project.writeState("config.toml", providerToml(server));
  await project.write("notes.txt", "words\n");
  const list = join(project.home, "loaded");

  const run = await runCookie(project, ["run", "--permission-mode", "yolo", "hi"], {
    env: {
      LOADED: list,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(REGISTER)}`,
    },
  });

  expect(run).toMatchObject({ exitCode: 0, stdout: "done\n" });
  const loaded = (await readFile(list, "utf8")).split("\n").filter((url) => /cli\/dist/.test(url));
  expect(loaded.length).toBeGreaterThan(2);
  expect(await wordsIn(loaded.map((url) => fileURLToPath(url)))).toEqual([]);
  const dist = dirname(fileURLToPath(loaded[0] ?? ""));
  const all = (await readdir(dist)).filter((name) => name.endsWith(".js"));
  expect(await wordsIn(all.map((name) => join(dist, name)))).toEqual(SELDOM);
});

async function wordsIn(files: readonly string[]): Promise<string[]> {
  const sources = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return SELDOM.filter((words) => sources.some((source) => source.includes(words)));
}
