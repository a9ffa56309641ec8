import { describe, expect, test } from "vitest";
import type {
  HistoryMessage,
  ToolResultMessage,
} from "../../../../kernel/src/model/bound-model.ts";
import { flattenHistory } from "../../../../kernel/src/run/flatten-history.ts";
import { byteLengthOf } from "../../../../kernel/src/run/message-size.ts";
import { trimHistory } from "../../../../kernel/src/run/trim-history.ts";

const MODEL = { model: "custom.test/model", variant: null };
const DIGEST = "0".repeat(64);

function asked(input: object, ...extra: object[]): HistoryMessage {
  const call = { type: "tool_call", id: "a", name: "look", input, raw_input: null };
  return {
    role: "assistant",
    content: [...extra, call],
    model: MODEL,
  } as unknown as HistoryMessage;
}

function answered(result: Partial<ToolResultMessage>): HistoryMessage {
  const base = { callId: "a", name: "look", output: "", isError: false, details: null };
  return { role: "tool", results: [{ ...base, ...result }] };
}

async function flatten(...messages: HistoryMessage[]) {
  const kept: string[] = [];
  const flat = await flattenHistory(messages, (bytes) => {
    kept.push(Buffer.from(bytes).toString());
    return Promise.resolve(`artifact://${DIGEST}`);
  });
  return { flat, kept, text: JSON.stringify(flat) };
}

describe("the shortened copy of a conversation", () => {
  test("[S-218] says calls and results in words and leaves out reasoning", async () => {
    const { flat, kept } = await flatten(
      { role: "user", text: "Hi" },
      asked({ path: "a" }, { type: "reasoning", text: "hmm" }, { type: "text", text: "Looking" }),
      answered({ output: "short" }),
    );
    expect(flat).toEqual([
      { role: "user", text: "Hi" },
      {
        role: "assistant",
        content: [{ type: "text", text: 'Looking\n[called look with {"path":"a"}]' }],
        model: MODEL,
      },
      { role: "user", text: "[look answered] short", injected: true },
    ]);
    expect(kept).toEqual([]);
  });

  test("[S-218] keeps a large output as an artifact, with the references that it holds", async () => {
    const nested = `artifact://${"1".repeat(64)}/stdout`;
    const output = `${"x".repeat(5000)}\n[full output: ${nested}]`;
    const { text, kept } = await flatten(asked({}), answered({ output }));
    expect(kept).toEqual([output]);
    expect(text).toContain(`all of it: artifact://${DIGEST}; it refers to ${nested}`);
    expect(text.length).toBeLessThan(1000);
  });

  test("[S-218] keeps what is more than text as JSON, media and messages with it as one unit", async () => {
    const file = {
      mime_type: "image/png",
      filename: "a.png",
      byte_length: 1,
      sha256: DIGEST,
      reference: "artifact://x",
    };
    const { text, kept } = await flatten(
      asked({}),
      answered({
        output: "seen",
        details: { width: 3 },
        attachments: [file] as never,
        additional: [{ role: "user", content: [{ type: "text", text: "beside" }] }],
      }),
    );
    expect(JSON.parse(kept[0] ?? "")).toMatchObject({
      output: "seen",
      metadata: { width: 3 },
      attachments: [{ filename: "a.png" }],
    });
    expect(text).toContain("as JSON of the tool's content");
    expect(text).not.toContain("beside");
  });

  test("[S-218] leaves out what was read of an artifact, for it can be read again", async () => {
    const uri = `artifact://${"2".repeat(64)}`;
    const { text, kept } = await flatten(
      asked({ filePath: uri }),
      answered({ output: "y".repeat(9000) }),
    );
    expect(kept).toEqual([]);
    expect(text).toContain(`left out: ${uri} can be read again`);
  });
});

describe("what is still too long", () => {
  const long = (text: string): HistoryMessage => ({ role: "user", text: text.repeat(4000) });

  test("[B122] loses the middle of long texts, then its oldest messages", () => {
    const messages = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"].map(long);
    const trimmed = trimHistory(messages, 8000, false);
    const size = trimmed.reduce((sum, message) => sum + byteLengthOf(message), 0);
    expect(size).toBeLessThanOrEqual(8000);
    expect(JSON.stringify(trimmed[0])).toMatch(/\d+ messages were left out/);
    expect(JSON.stringify(trimmed.at(-1))).toMatch(/kkk.*bytes left out.*kkk/);
  });

  test("[B122] keeps the summary of what was before", () => {
    const summary: HistoryMessage = { role: "user", text: "the summary" };
    const trimmed = trimHistory([summary, ...["a", "b", "c"].map(long)], 700, true);
    expect(trimmed[0]).toEqual(summary);
  });

  test("[B122] stays as it is when it fits", () => {
    const messages = [long("a")];
    expect(trimHistory(messages, 100_000, false)).toEqual(messages);
  });

  test("[B122] is cut between characters", () => {
    const trimmed = trimHistory([{ role: "user", text: "😀".repeat(3000) }], 1000, false);
    expect(JSON.stringify(trimmed)).not.toContain("\uFFFD");
  });
});
