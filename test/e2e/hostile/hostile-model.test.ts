import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ModelErrorKind } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { Answer } from "../../support/model-server.ts";
import { openTestKernel } from "../../support/open-test-kernel.ts";

const DEEP = 100_000;
const chat = (delta: object, finish: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  model: "scripted",
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const calls = (...named: { name: string; arguments: string; id?: string }[]): Answer => ({
  calls: named,
});

/** One hostile answer, then a sane one; the run completes, its log replays and the session can go on. */
const ANSWERS: Record<string, Answer> = {
  "arguments nested 100000 deep": calls({
    name: "read",
    arguments: `{"filePath":${"[".repeat(DEEP)}${"]".repeat(DEEP)}}`,
  }),
  "objects nested 100000 deep": calls({
    name: "read",
    arguments: `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`,
  }),
  "arguments nested 5000 deep": calls({
    name: "read",
    arguments: `{"filePath":"a","x":${'{"a":'.repeat(5000)}1${"}".repeat(5000)}}`,
  }),
  "arguments of 3 MB": calls({
    name: "bash",
    arguments: JSON.stringify({ command: `echo ${"x".repeat(3_000_000)}` }),
  }),
  "a lone surrogate in arguments": calls({ name: "bash", arguments: '{"command":"echo \\ud800"}' }),
  "a lone surrogate in a key": calls({ name: "bash", arguments: '{"command":"true","\\udc00":1}' }),
  "a lone surrogate in text": { text: "a\ud800b" },
  "a NUL in text": { text: "a\u0000b\u001b[2Jc" },
  "a prototype key": calls({ name: "read", arguments: '{"__proto__":{"filePath":"a"}}' }),
  "names of prototype members": calls(
    ...["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"].map((name) => ({
      name,
      arguments: "{}",
    })),
  ),
  "control characters in a name": calls({ name: "re\u0000ad\n\u001b[2J", arguments: "{}" }),
  "a name of 100 kB": calls({ name: "x".repeat(100_000), arguments: "{}" }),
  "an id of 100 kB": calls({ id: "x".repeat(100_000), name: "read", arguments: "{}" }),
  "ids that are prototype members": calls(
    { id: "__proto__", name: "bash", arguments: '{"command":"true"}' },
    { id: "constructor", name: "bash", arguments: '{"command":"true"}' },
  ),
  "the same id sixty-four times": calls(
    ...Array.from({ length: 64 }, (_, index) => ({
      id: "same",
      name: "bash",
      arguments: JSON.stringify({ command: `: ${index}` }),
    })),
  ),
  "the same call eight times": calls(
    ...Array.from({ length: 8 }, () => ({
      id: "same",
      name: "bash",
      arguments: '{"command":"true"}',
    })),
  ),
  "no JSON as arguments": calls({ name: "read", arguments: "}{" }),
  "a number as arguments": calls({ name: "read", arguments: "1e999" }),
  "huge numbers": calls({ name: "read", arguments: '{"filePath":"a","offset":1e400}' }),
  "an empty answer": { events: [chat({}, "stop"), "data: [DONE]\n\n"] },
  "a delta of 5 MB": { text: "x".repeat(5_000_000) },
};

describe("an answer of the model", () => {
  test.for(Object.entries(ANSWERS))(
    "[S-045] with %s completes the run and leaves a log that replays",
    async ([, answer]) => {
      const kernel = await openTestKernel({ answers: [answer] });
      kernel.server.otherwise({ text: "done" });
      const first = await kernel.run("Hi");
      expect(first.end).toMatchObject({ type: "run_completed", final_text: lastWord(answer) });
      await expectReadable(kernel.project.stateDir);
      await kernel.close();
      const again = await openTestKernel({ on: kernel });
      const second = await again.run("Go on", { session: first.sessionId });
      expect(second.end).toMatchObject({ type: "run_completed", final_text: "done" });
    },
  );

  test.for<[string, Answer, ModelErrorKind, string]>([
    [
      "garbage",
      { events: ["\u0000\u0001\u0002 garbage\n\n", "data: {]\n\n", "data: null\n\n"] },
      "invalid_response",
      "sent an event that is not understood (JSONParseError)",
    ],
    [
      "HTML",
      { body: "<html>no</html>", status: 200 },
      "invalid_response",
      "where an event stream was expected",
    ],
    [
      "JSON of other shapes",
      { events: [[], 1, "x", { choices: 5 }].map((x) => `data: ${JSON.stringify(x)}\n\n`) },
      "invalid_response",
      "sent an event that is not understood (TypeValidationError)",
    ],
    [
      "choices of null",
      { events: [{ choices: [null] }] },
      "invalid_response",
      "sent an event that is not understood (TypeValidationError)",
    ],
    [
      "a line of 20 MB",
      { events: [`data: {"x":"${"y".repeat(20_000_000)}"}\n\n`] },
      "invalid_response",
      "an event of the response is larger than 8 MiB",
    ],
    [
      "arguments without a call",
      {
        events: [chat({ tool_calls: [{ index: 3, function: { arguments: "{}" } }] }, "tool_calls")],
      },
      "invalid_response",
      "sent an event that is not understood (InvalidResponseDataError)",
    ],
    [
      "deep JSON",
      { events: [`data: ${"[".repeat(DEEP)}${"]".repeat(DEEP)}\n\n`] },
      "invalid_response",
      "sent an event that is not understood (JSONParseError)",
    ],
    [
      "an error object",
      { status: 400, body: { error: { message: "\u001b[2J\u0000bad", code: { a: 1 } } } },
      "invalid_request",
      "answered HTTP 400:  [2J bad",
    ],
    [
      "an error nested deep",
      { status: 400, body: `${"[".repeat(DEEP)}` },
      "invalid_request",
      "answered HTTP 400: Bad Request",
    ],
  ])("[S-045] that is %s fails the run, not the kernel", async ([, answer, kind, message]) => {
    const kernel = await openTestKernel({
      answers: [answer],
      config: "[model_retry]\nstandard_retries = 0\noverload_retries = 0\n",
    });
    kernel.server.otherwise({ text: "done" });
    const { end, sessionId } = await kernel.run("Hi");
    expect(end).toMatchObject({
      type: "run_failed",
      error: {
        code: "model_error",
        message: expect.stringContaining(message) as string,
        model_error: { kind },
      },
    });
    const error = JSON.stringify(end);
    expect(error).not.toMatch(/\\u001b|\\u0000/);
    expect((await kernel.run("Again", { session: sessionId })).end.type).toBe("run_completed");
    await expectReadable(kernel.project.stateDir);
  });
});

/** Calls are answered and the next turn says "done"; anything else is the last word itself. */
function lastWord(answer: Answer): unknown {
  if ("calls" in answer) return "done";
  return "text" in answer ? answer.text : null;
}

async function expectReadable(stateDir: string): Promise<void> {
  const sessions = join(stateDir, "sessions");
  const names = await readdir(sessions, { recursive: true });
  const logs = names.filter((name) => name.endsWith("events.jsonl"));
  expect(logs).toHaveLength(1);
  for (const log of logs) {
    const text = await readFile(join(sessions, log), "utf8");
    for (const line of text.trimEnd().split("\n")) JSON.parse(line);
  }
}
