import type { SessionId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { encodeEvents } from "../../../../kernel/src/event/encode-event.ts";
import { FIRST_LINE } from "../../../../kernel/src/event/line-context.ts";
import { parseRecord } from "../../../../kernel/src/event/parse-record.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { eventsOf, RunScript, sessionCreated, USAGE } from "./event-fixtures.ts";

const sessionId = createId<SessionId>();
const run = new RunScript();
const owner = { ...run.owner, provider_item_id: null };
const call = { type: "tool_call", id: "c", provider_item_id: null, name: "read" } as const;

describe("[S-052] what a line leaves out", () => {
  const events = eventsOf(sessionId, [
    sessionCreated(),
    run.started(),
    run.turn(),
    run.usage(),
    run.callStarted({ owner }),
    run.callEnded({ owner }),
    run.callEnded({ outcome: "failed", result: null, error: { code: "x", message: "y" } }),
    run.turn({
      turn: {
        content: [
          { ...call, input: { path: null }, raw_input: null },
          { ...call, input: null, raw_input: "{" },
        ],
        finish_reason: "tool_calls",
        usage: { ...USAGE, input_tokens: 3, output_tokens: null },
      },
    }),
  ]);

  test.for(
    encodeEvents(events, FIRST_LINE).map((line) => [line.event.payload.type, line] as const),
  )("is read back as it was: %s", ([, { event, before, bytes }]) => {
    const line = bytes.toString().trimEnd();
    expect(parseRecord(line, sessionId, before)).toEqual({ kind: "event", event, degraded: [] });
  });

  test("is only what is null or known, and no value of a model or a tool", () => {
    const lines = encodeEvents(events, FIRST_LINE).map(({ bytes }) => bytes.toString());
    expect(lines[0]).toContain(sessionId);
    expect(lines.slice(1).join("")).not.toContain(sessionId);
    expect(lines[3]).not.toContain('"usage"');
    expect(lines[4]).not.toContain("null");
    expect(lines[7]).toContain('"input":{"path":null}');
    expect(lines[7]).toContain('"input":null');
    expect(lines[7]).not.toContain("output_tokens");
  });
});
