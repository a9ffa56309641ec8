import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const SECRET = "sk-0123456789-very-secret-value";
const KEY = "${env:TEST_PROVIDER_KEY}";
const env = { TEST_PROVIDER_KEY: SECRET, HARMLESS: "shown" };

/** Files below the state directory that hold the secret. */
async function filesWithSecret({ project }: TestKernel): Promise<string[]> {
  const names = await readdir(project.stateDir, { recursive: true });
  const found: string[] = [];
  for (const name of names) {
    const path = join(project.stateDir, name);
    if ((await stat(path)).isFile() && (await readFile(path)).includes(SECRET)) found.push(name);
  }
  return found;
}

describe("a provider's key", () => {
  test("[S-049] [C-036] is sent to the provider and stands nowhere else", async () => {
    const kernel = await openTestKernel({
      apiKey: KEY,
      env,
      config: `${fixturePlugin("echo")}`,
      answers: [
        {
          calls: [
            { name: "bash", arguments: { command: "env" } },
            { name: "describe_process", arguments: {} },
          ],
        },
        { status: 401, body: { error: { message: `bad key ${SECRET}` } } },
      ],
    });
    const { watch, end } = await kernel.run("Hi");
    expect(end.type).toBe("run_failed");
    expect(kernel.server.requests[0]?.headers.authorization).toBe(`Bearer ${SECRET}`);
    const outputs = watch.payloads("tool_call_terminated").map(({ result }) => result?.output);
    expect(outputs).toContainEqual(expect.stringContaining("HARMLESS=shown"));
    expect(JSON.stringify(watch.news)).not.toContain(SECRET);
    expect(JSON.stringify(kernel.logged)).not.toContain(SECRET);
    expect(JSON.stringify(kernel.server.requests.map(({ body }) => body))).not.toContain(SECRET);
    expect(await filesWithSecret(kernel)).toEqual([]);
  });

  test("[S-005] identity in a model's arguments does not reach a plugin", async () => {
    const kernel = await openTestKernel({
      config: fixturePlugin("echo"),
      answers: [
        { calls: [{ name: "describe_process", arguments: { session_id: "forged" } }] },
        { calls: [{ name: "describe_process", arguments: {} }] },
        { text: "ok" },
      ],
    });
    const { sessionId, runId, watch } = await kernel.run("Hi");
    const [forged, honest] = watch.payloads("tool_call_terminated");
    expect(forged?.error?.code).toBe("invalid_arguments");
    const { call } = JSON.parse(honest?.result?.output ?? "");
    expect(call).toMatchObject({ session_id: sessionId, run_id: runId });
  });
});

test("[E-126] a command of the shipped shell learns nothing of the turn that it runs for", async () => {
  const command = "env; for it in cmdline environ; do tr '\\0' '\\n' < /proc/$PPID/$it; done";
  const kernel = await openTestKernel({
    env,
    answers: [{ calls: [{ name: "bash", arguments: { command } }] }, { text: "ok" }],
  });
  const { sessionId, runId, watch } = await kernel.run("Hi");
  const { model, agent } = kernel.selection;
  const [ended] = watch.payloads("tool_call_terminated");
  const output = ended?.result?.output ?? "";
  expect(output).toContain("HARMLESS=shown");
  for (const fact of [sessionId, runId, model.model, `=${agent}\n`]) {
    expect(output).not.toContain(fact);
  }
});
