import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ModelServer, pick, startModelServer } from "../../support/model-server.ts";
import { runCookie, runScript } from "../../support/run-cookie.ts";
import { payloadsOf, readOnlyLog } from "../../support/session-log.ts";
import { createTempProject, type TempProject } from "../../support/temp-project.ts";
import { codeBlocks } from "./code-blocks.ts";
import { readerShell } from "./reader-shell.ts";

let project: TempProject;

beforeEach(async () => {
  project = await createTempProject();
});
afterEach(() => project.remove());

test("the first run prints what the README shows, line by line", async () => {
  const session = oneBlock("A first run", "console");
  const kitchen = join(project.home, "kitchen");
  await mkdir(kitchen);
  const type = readerShell(project);
  let shown = "";
  let last = 0;
  for (const { command, output } of exchanges(session)) {
    const { printed, exitCode } = await type(command.replace("$?", String(last)), kitchen);
    last = exitCode ?? -1;
    expect(printed.replaceAll(project.home, "/home/you"), command).toBe(output);
    shown += output;
  }
  expect(shown).toContain("Script done:");
});

describe("connecting a model", () => {
  const configs = codeBlocks("README.md", "Connect a model")
    .filter(({ language }) => language === "toml")
    .map(({ text }) => text);
  const command = oneBlock("Connect a model", "sh");
  const key = /\$\{env:(\w+)\}/;
  let server: ModelServer;

  beforeEach(async () => {
    server = await startModelServer({ text: "It is a kitchen." });
  });
  afterEach(() => server.close());

  test("the README shows four services", () => expect(configs).toHaveLength(4));

  test.for(configs)(
    "provider %# is accepted as it stands, and its wire, path and key are right",
    async (config) => {
      const model = modelOf(config);
      const env = { [key.exec(config)?.[1] ?? "UNUSED"]: "sk-from-the-environment" };
      await project.writeState("config.toml", config);
      const models = await runCookie(project, ["doctor", "--json"], { env });
      expect(models).toMatchObject({ exitCode: 0 });
      expect(models.stdout).toContain(model);

      const endpoint = `endpoint = ${JSON.stringify(server.baseUrl)}`;
      const lines = config.split("\n").filter((line) => !line.startsWith("endpoint"));
      await project.writeState("config.toml", [lines[0], endpoint, ...lines.slice(1)].join("\n"));
      const asked = command.replace("custom.anthropic/claude-sonnet-4-5", model);
      const answer = await readerShell(project, env)(asked);
      expect(answer).toEqual({ exitCode: 0, printed: "It is a kitchen.\n" });
      const [request] = server.requests;
      const { authorization, "x-api-key": apiKey } = request?.headers ?? {};
      expect(apiKey ?? authorization?.replace("Bearer ", "")).toBe(
        key.test(config) ? "sk-from-the-environment" : undefined,
      );
      expect(pick(request?.body, "model")).toBe(model.slice(model.indexOf("/") + 1));
    },
  );
});

/** The model key that a provider block configures. */
function modelOf(config: string): string {
  const provider = /^\[providers\."([^"]+)"\]/m.exec(config)?.[1];
  const model = /^models\."?([^"=]+?)"? = /m.exec(config)?.[1];
  return `${provider}/${model}`;
}

test("the agent of the README may run git and nothing that hides behind it", async () => {
  const agent = oneBlock("Permissions", "markdown");
  await project.writeState(
    "agents/reviewer.md",
    agent.replace("custom.anthropic/claude-sonnet-4-5", "offline/script"),
  );
  const run = await runCookie(project, [
    "run",
    "--agent=reviewer",
    'call bash {"command":"git --version"}\ncall bash {"command":"git --version; touch made"}',
  ]);
  expect(run.exitCode).toBe(0);
  expect(run.stdout).toMatch(
    /- bash: ok: \[stdout\] git version .*\n- bash: failed: \[error permission_denied\]/,
  );
});

test.for([
  ["auto-approve", 3],
  ["auto-approve-n", 3],
  ["ask", 3],
  ["auto-approve-y", 0],
  ["yolo", 0],
] as const)("[C-221] mode %s ends a run that has to ask with %i", async ([mode, exitCode]) => {
  const args = ["run", "-m", "offline/script", "--permission-mode", mode];
  const run = await runCookie(project, [...args, 'call bash {"command":"true"}\ncall read {}']);
  expect(run.exitCode).toBe(exitCode);
  // A refusal that nobody could lift ends the run there and then: the model is not asked again.
  const events = await readOnlyLog(project);
  expect(payloadsOf(events, "run_cancelled")).toMatchObject(
    exitCode === 0 ? [] : [{ reason: "permission" }],
  );
  expect(payloadsOf(events, "model_attempt_started")).toHaveLength(exitCode === 0 ? 2 : 1);
});

test("[E-072] a trusted project swaps a tool with the lines of the README", async () => {
  const plugin = join(project.home, "my-files");
  await mkdir(plugin);
  await writeFile(join(plugin, "main.mjs"), READER);
  await writeFile(join(plugin, "cookie-plugin.json"), JSON.stringify(READER_MANIFEST));
  const config = oneBlock("Swap a tool", "toml").replace("/home/you", project.home);
  await project.write(".cookie-agent/config.toml", config);
  await project.write("a.txt", "from the disk\n");
  const script = 'call read {"filePath":"a.txt"}';

  const before = await runScript(project, script);
  expect(before.stdout).toContain("1: from the disk");
  expect(before.stderr).toContain("cookie trust");
  expect(await runCookie(project, ["trust", "--yes"])).toMatchObject({ exitCode: 0 });
  const after = await runScript(project, script);
  expect(after).toMatchObject({ exitCode: 0, stderr: "" });
  expect(after.stdout).toBe("Script done:\n- read: ok: from my own reader\n");
});

const READER_MANIFEST = {
  manifest: 1,
  name: "my_files",
  version: "1.0.0",
  protocol: ["0.1.0"],
  runtime: { kind: "node", entry: "main.mjs" },
  tools: [
    {
      name: "read",
      description: "Reads a file.",
      permission_name: "read",
      prepare: { mode: "static", resources: [{ action: "read", arg: "filePath", as: "path" }] },
      parameters: {
        type: "object",
        properties: {
          filePath: { type: "string" },
          offset: { type: "integer" },
          byte: { type: "integer" },
          limit: { type: "integer" },
        },
        required: ["filePath"],
        additionalProperties: false,
      },
    },
  ],
};

const READER = `
import { createInterface } from "node:readline";
const answers = {
  "plugin/initialize": { protocol_version: "0.1.0", name: "my_files", version: "1.0.0" },
  "plugin/tools/call": { content: "from my own reader" },
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  const result = answers[method];
  if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
}
`;

function oneBlock(heading: string, language: string): string {
  const blocks = codeBlocks("README.md", heading).filter((block) => block.language === language);
  const block = language === "toml" ? blocks.at(-1) : blocks[0];
  expect(block, heading).toBeDefined();
  return block?.text ?? "";
}

/** The commands of a terminal session, each with what it printed. */
function exchanges(session: string): { command: string; output: string }[] {
  const found: { command: string; output: string }[] = [];
  for (const line of session.trimEnd().split("\n")) {
    const current = found.at(-1);
    if (line.startsWith("$ ")) found.push({ command: line.slice(2), output: "" });
    else if (current === undefined) throw new Error(`output before the first command: ${line}`);
    else if (line.startsWith("> ")) current.command += `\n${line.slice(2)}`;
    else current.output += `${line}\n`;
  }
  return found;
}
