import type { SessionId, StoredEvent } from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { encodeEvents } from "../../../../kernel/src/event/encode-event.ts";
import { FIRST_LINE } from "../../../../kernel/src/event/line-context.ts";
import { readLog } from "../../../../kernel/src/event/read-log.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import {
  diagnostic,
  eventsOf,
  overlaySet,
  RunScript,
  sessionCreated,
  USAGE,
} from "./event-fixtures.ts";

const sessionId = createId<SessionId>();

async function read(
  lines: readonly Uint8Array[],
  from = { startByte: 0, lastSeq: 0, context: FIRST_LINE },
) {
  async function* chunks() {
    yield Buffer.concat(lines);
  }
  const found: { event: StoredEvent; startByte: number; before: typeof FIRST_LINE }[] = [];
  for await (const batch of readLog(chunks(), sessionId, from)) {
    for (const item of batch) if (item.kind === "event") found.push(item);
  }
  return found;
}

/** Runs of some turns, with what happens outside runs between and within them. */
const logs = fc
  .array(
    fc.record({
      turns: fc.nat(3),
      ends: fc.boolean(),
      between: fc.nat(2),
      knownUsage: fc.boolean(),
      pauseMs: fc.nat(2),
    }),
    { maxLength: 5 },
  )
  .map((runs) => {
    const drafts = [sessionCreated()];
    const pauses = [0];
    const add = (draft: (typeof drafts)[number], pauseMs = 0) => {
      drafts.push(draft);
      pauses.push(pauseMs);
    };
    let turnSeq = 0;
    for (const { turns, ends, between, knownUsage, pauseMs } of runs) {
      for (let each = 0; each < between; each += 1) add(diagnostic(), pauseMs);
      const run = new RunScript(turnSeq + 1);
      add(run.started(), pauseMs);
      add(run.input());
      for (let turn = 0; turn < turns; turn += 1) {
        turnSeq += 1;
        add(run.attempt(), pauseMs);
        add(run.turn({ model_turn_seq: turnSeq }));
        const usage = run.usage(turnSeq);
        const other = { ...usage.payload, usage: { ...USAGE, input_tokens: 123_456 } };
        add(knownUsage ? usage : { ...usage, payload: other as typeof usage.payload });
        if (between > 1) add(overlaySet(`r${turnSeq}`), pauseMs);
      }
      if (ends) add(run.completed(), pauseMs);
      if (ends && between > 0) add(run.of({ type: "user_input_applied", user_input_seq: 1 }));
    }
    let timeMs = Date.parse("2026-01-01T00:00:00.000Z");
    return eventsOf(sessionId, drafts).map((event, index) => {
      timeMs += pauses[index] ?? 0;
      return { ...event, timestamp: new Date(timeMs).toISOString() };
    });
  });

test("[S-036] what lines leave out is read back, from the beginning and from any line", async () => {
  await fc.assert(
    fc.asyncProperty(logs, async (events) => {
      const lines = encodeEvents(events, FIRST_LINE).map(({ bytes }) => bytes);
      const found = await read(lines);
      expect(found.map(({ event }) => event)).toEqual(events);
      for (const [index, { startByte, before }] of found.entries()) {
        if (index === 0) continue;
        const from = { startByte, lastSeq: index, context: before };
        const rest = await read(lines.slice(index), from);
        expect(rest.map(({ event }) => event)).toEqual(events.slice(index));
      }
    }),
    { numRuns: 50 },
  );
});

test("[S-051] a lost line costs no other event, no later turn its run, and no record its payload but a repeated usage", async () => {
  await fc.assert(
    fc.asyncProperty(logs, fc.nat(), async (events, pick) => {
      const lines = encodeEvents(events, FIRST_LINE).map(({ bytes }) => bytes);
      if (lines.length < 2) return;
      const lost = 1 + (pick % (lines.length - 1));
      const found = await read(lines.filter((_, index) => index !== lost));
      const kept = events.filter((_, index) => index !== lost);
      expect(found.map(({ event }) => event.seq)).toEqual(kept.map(({ seq }) => seq));
      const lostTurn = events[lost]?.payload.type === "model_turn_committed";
      for (const [index, { event }] of found.entries()) {
        const written = kept[index];
        const isRepeated = lostTurn && event.payload.type === "model_usage_recorded";
        if (!isRepeated) expect(event.payload).toEqual(written?.payload);
        if (event.payload.type === "model_attempt_started") {
          expect(event.run_id).toBe(written?.run_id);
        }
      }
    }),
    { numRuns: 100 },
  );
});
