import {
  MAX_FRAME_BYTES,
  type RunId,
  type SessionId,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EventLog } from "../../../../kernel/src/event/event-log.ts";
import { GroupCommit } from "../../../../kernel/src/event/group-commit.ts";
import type { Subscription } from "../../../../kernel/src/event/subscriber-hub.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import {
  diagnostic,
  linesOf,
  MemoryStore,
  metadataOf,
  overlaySet,
  RunScript,
  sessionCreated,
} from "./event-fixtures.ts";

class Bench {
  readonly sessionId = createId<SessionId>();
  readonly applied: StoredEvent[] = [];
  /** What plugins are told: each event, whether it was durable then, and what had been folded. */
  readonly recorded: { seq: number; durable: boolean; folded: number }[] = [];
  readonly store: MemoryStore;
  readonly log: EventLog;
  /** The event that the projection fails at. */
  stumblesAt: number | undefined;
  nowMs = Date.parse("2026-01-01T00:00:00.000Z");

  constructor() {
    this.store = new MemoryStore(this.sessionId);
    this.log = EventLog.create(this.#options());
  }

  #options() {
    return {
      sessionId: this.sessionId,
      rootId: this.sessionId,
      store: this.store,
      sync: new GroupCommit(),
      observer: {
        apply: (event: StoredEvent) => {
          if (event.seq === this.stumblesAt) throw new Error("an error of the engine");
          this.applied.push(event);
        },
        restart: () => void this.applied.splice(0),
      },
      metadata: () => metadataOf(this.sessionId),
      onRecorded: ({ seq }: StoredEvent) =>
        void this.recorded.push({
          seq,
          durable: this.store.log.durable.includes(`"seq":${seq},`),
          folded: this.applied.at(-1)?.seq ?? 0,
        }),
      now: () => new Date(this.nowMs),
    };
  }

  /** A log over the bytes of this bench's file, with or without the right to write. */
  reopen(writing = true): Promise<EventLog> {
    this.applied.length = 0;
    const location = { sessionId: this.sessionId, rootId: this.sessionId };
    const lease = writing ? { lease: this.store.lease } : {};
    return EventLog.open({ ...this.#options(), location, ...lease });
  }

  get seqs(): number[] {
    return this.applied.map(({ seq }) => seq);
  }

  get types(): string[] {
    return this.applied.map(({ payload }) => payload.type);
  }

  get lines(): string[] {
    return this.store.log.text.split("\n").slice(0, -1);
  }
}

/** A published session in the middle of a run, with an attempt open. */
async function running(): Promise<{ bench: Bench; log: EventLog; run: RunScript }> {
  const bench = new Bench();
  const run = new RunScript();
  await bench.log.append([sessionCreated()]);
  await bench.log.append([run.started(), run.input()]);
  await bench.log.append([run.attempt()]);
  return { bench, log: bench.log, run };
}

describe("a revert", () => {
  test("[S-061] [S-062] [S-229] folds anew what still counts, live as when the log is opened, and tells everybody of the marker", async () => {
    const { bench, log, run } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    await log.append([run.completed()]);
    const marker = await log.revert(3);
    expect(marker).toMatchObject({ seq: 6, run_id: null, payload: { through_seq: 3 } });
    expect(bench.seqs).toEqual([1, 2, 3, 6]);
    expect(await next(tail, 2)).toMatchObject([{ seq: 5 }, { seq: 6 }]);
    expect(bench.recorded.at(-1)).toEqual({ seq: 6, durable: true, folded: 6 });
    expect(bench.lines).toHaveLength(6);
    const other = new RunScript();
    await log.append([other.started(), other.input()]);
    expect(bench.seqs).toEqual([1, 2, 3, 6, 7, 8]);
    const again = await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 3, 6, 7, 8]);
    expect(again.tipSeq).toBe(8);
    const page = await again.subscribe({ cursor: 0, live: false });
    expect(page.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test("[S-023] of a session in memory leaves it there", async () => {
    const bench = new Bench();
    await bench.log.append([sessionCreated()]);
    await bench.log.append([overlaySet()]);
    await bench.log.revert(1);
    expect([bench.seqs, bench.store.publications]).toEqual([[1, 3], 0]);
    const run = new RunScript();
    await bench.log.append([run.started(), run.input()]);
    await bench.reopen();
    expect(bench.seqs).toEqual([1, 3, 4, 5]);
  });

  test.for([0, -1, 5, 1.5, Number.NaN])("goes to no event %d", async (seq) => {
    const { bench, log } = await running();
    await expect(log.revert(seq)).rejects.toMatchObject({ code: "invalid_sequence" });
    expect([bench.seqs, bench.lines.length]).toEqual([[1, 2, 3, 4], 4]);
  });

  test("[S-047] that cannot be made durable changes nothing, and can be repeated", async () => {
    const { bench, log } = await running();
    bench.store.log.failSync = true;
    await expect(log.revert(3)).rejects.toMatchObject({ code: "storage_failed" });
    expect([bench.seqs, log.tipSeq]).toEqual([[1, 2, 3, 4], 4]);
    bench.store.log.failSync = false;
    await log.revert(2);
    expect(bench.seqs).toEqual([1, 2, 5]);
    await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 5]);
  });

  test("[S-047] whose log cannot be read again is recorded and closes the log, which then opens as it was left", async () => {
    const { bench, log } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    bench.store.log.failRead = true;
    await expect(log.revert(3)).rejects.toMatchObject({ code: "storage_failed" });
    expect(log.writable).toBe(false);
    expect(await next(tail, 1)).toMatchObject([{ gap: 4 }]);
    await expect(log.append([overlaySet()])).rejects.toMatchObject({ code: "shutting_down" });
    bench.store.log.failRead = false;
    const again = await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 3, 5]);
    await again.append([overlaySet()]);
    expect(bench.seqs).toEqual([1, 2, 3, 5, 6]);
  });
});

async function next<T>(tail: Subscription<T> | undefined, count: number): Promise<unknown[]> {
  const items: unknown[] = [];
  if (tail === undefined) throw new Error("no tail");
  for await (const item of tail) {
    items.push(item);
    if (items.length === count) break;
  }
  return items;
}

describe("publication", () => {
  test("[S-023] a session stays in memory until its first user message", async () => {
    const { log, store } = new Bench();
    await log.append([sessionCreated()]);
    await log.append([overlaySet()]);
    expect([store.publications, log.published]).toEqual([0, false]);
    const run = new RunScript();
    await log.append([run.started(), run.input()]);
    expect([store.publications, log.published]).toEqual([1, true]);
    expect(store.log.text.split("\n")).toHaveLength(5);
  });

  test("[S-026] [S-047] a failed publication leaves the buffer as it was, and can be repeated", async () => {
    const bench = new Bench();
    const run = new RunScript();
    await bench.log.append([sessionCreated()]);
    bench.store.failPublication = true;
    await expect(bench.log.append([run.started(), run.input()])).rejects.toMatchObject({
      code: "storage_failed",
    });
    expect([bench.log.published, bench.log.tipSeq, bench.seqs]).toEqual([false, 1, [1]]);
    bench.store.failPublication = false;
    await bench.log.append([run.started(), run.input()]);
    expect(bench.seqs).toEqual([1, 2, 3]);
  });

  test("[E-140] whoever hears what is recorded is told of nothing before it is on disk, then of all in order", async () => {
    const bench = new Bench();
    const run = new RunScript();
    await bench.log.append([sessionCreated()]);
    await bench.log.append([overlaySet()]);
    expect(bench.recorded).toEqual([]);
    bench.store.failPublication = true;
    await bench.log.append([run.started(), run.input()]).catch(() => undefined);
    expect(bench.recorded).toEqual([]);
    bench.store.failPublication = false;
    await bench.log.append([run.started(), run.input()]);
    bench.store.log.failSync = true;
    await bench.log.append([run.attempt()]).catch(() => undefined);
    bench.store.log.failSync = false;
    await bench.log.append([run.attempt()]);
    expect(bench.recorded).toEqual([
      { seq: 1, durable: true, folded: 2 },
      { seq: 2, durable: true, folded: 2 },
      { seq: 3, durable: true, folded: 3 },
      { seq: 4, durable: true, folded: 4 },
      { seq: 5, durable: true, folded: 5 },
    ]);
    bench.recorded.length = 0;
    await bench.log.close();
    await bench.reopen();
    expect(bench.recorded).toEqual([]);
  });

  test("[S-027] closing an unpublished session leaves nothing", async () => {
    const { log, store } = new Bench();
    await log.append([sessionCreated()]);
    await log.close();
    expect([store.publications, store.log.byteLength]).toEqual([0, 0]);
  });

  test("[S-023] subscribers of an unpublished session get its buffer", async () => {
    const { log } = new Bench();
    await log.append([sessionCreated()]);
    const { events, tail } = await log.subscribe({ cursor: 0, live: true });
    await log.append([diagnostic()]);
    expect(events.map(({ seq }) => seq)).toEqual([1]);
    expect(await next(tail, 1)).toMatchObject([{ seq: 2 }]);
  });
});

describe("writing", () => {
  test("[S-036] [S-037] each line is the envelope alone, in sequence", async () => {
    const { bench, run } = await running();
    const lines = bench.lines.map((line) => JSON.parse(line) as StoredEvent);
    expect(lines.map((line) => Object.keys(line))).toEqual([
      ["session_id", "seq", "timestamp", "payload"],
      ["run_id", "seq", "payload"],
      ["seq", "payload"],
      ["run_id", "seq", "payload"],
    ]);
    const { events } = await bench.log.subscribe({ cursor: 0, live: false });
    for (const event of events) {
      expect(Object.keys(event)).toEqual(["session_id", "run_id", "seq", "timestamp", "payload"]);
    }
    expect(events.map(({ seq, run_id }) => [seq, run_id])).toEqual([
      [1, null],
      [2, run.runId],
      [3, run.runId],
      [4, run.runId],
    ]);
  });

  test("[S-037] time does not run backwards in a log, not even over a restart", async () => {
    const { bench, log } = await running();
    bench.nowMs -= 60_000;
    await log.append([diagnostic()]);
    await log.close();
    const again = await bench.reopen();
    await again.append([diagnostic()]);
    expect(new Set(bench.applied.map(({ timestamp }) => timestamp)).size).toBe(1);
  });

  test("[S-046] [S-238] an event is folded and published only when it is durable", async () => {
    const { bench, log } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    const durableAtFold: boolean[] = [];
    const arrival = next(tail, 1).then(() =>
      bench.store.log.durable.toString().includes('"seq":5'),
    );
    bench.applied.push = () =>
      durableAtFold.push(bench.store.log.durable.toString().includes('"seq":5'));
    await log.append([diagnostic()]);
    expect([durableAtFold, await arrival]).toEqual([[true], true]);
  });

  test("[S-046] the events of one append are one write and one sync", async () => {
    const { bench, log, run } = await running();
    const { appends, syncs } = bench.store.log;
    await log.append([run.turn(), run.usage(), run.callStarted()]);
    expect([bench.store.log.appends - appends, bench.store.log.syncs - syncs]).toEqual([1, 1]);
  });

  test("[S-048] one event that must not follow rejects all of its append", async () => {
    const { bench, log, run } = await running();
    const before = bench.store.log.text;
    const bad = log.append([run.turn(), run.usage(), run.usage()]);
    await expect(bad).rejects.toMatchObject({ code: "engine" });
    expect([bench.store.log.text, log.tipSeq]).toEqual([before, 4]);
    await log.append([run.turn(), run.usage()]);
    expect(bench.seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("[S-048] an event that does not fit its schema is refused without showing its values", async () => {
    const { log, run } = await running();
    const bad = run.of({ type: "user_input_submitted", input: "   " });
    const refusal = log.append([bad]);
    await expect(refusal).rejects.toMatchObject({ code: "engine" });
    await expect(refusal).rejects.toThrow(/user_input_submitted.*input/);
  });

  test("fields that the schema does not list are not written", async () => {
    const { bench, log, run } = await running();
    const payload = { ...run.input().payload, authorization: "Bearer secret" };
    await log.append([{ payload, runId: run.runId as RunId }]);
    expect(bench.store.log.text).not.toContain("secret");
  });

  test("[B100] any text is one physical line and reads back as it was", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\n", "\0", "\ud800", '"')),
        ),
        async (parts) => {
          const { bench, log, run } = await running();
          const input = `.${parts.join("")}`;
          await log.append([run.input(input)]);
          expect(bench.lines).toHaveLength(5);
          const { events } = await log.subscribe({ cursor: 4, live: false });
          expect(events[0]?.payload).toEqual({ type: "user_input_submitted", input });
          await bench.reopen();
          expect(bench.applied.at(-1)?.payload).toEqual({ type: "user_input_submitted", input });
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("stream class", () => {
  test("[S-248] deltas of a stream become one record without a sync of their own", async () => {
    const { bench, log, run } = await running();
    const { appends, syncs } = bench.store.log;
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    for (const text of ["a", "b", "c"]) log.appendStream(run.text(text));
    expect(await next(tail, 1)).toMatchObject([{ seq: 5, payload: { text: "abc" } }]);
    expect([bench.store.log.appends - appends, bench.store.log.syncs - syncs]).toEqual([1, 0]);
  });

  test("[S-248] 4 KiB of one stream are written without waiting for the time to pass", async () => {
    const { log, run } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    log.appendStream(run.text("x".repeat(4096)));
    log.appendStream(run.text("y"));
    expect(await next(tail, 1)).toMatchObject([{ payload: { text: `${"x".repeat(4096)}y` } }]);
  });

  test("[S-248] what is gathered comes before the next append, in the same write", async () => {
    const { bench, log, run } = await running();
    const { appends } = bench.store.log;
    log.appendStream(run.text("part"));
    log.appendStream(run.of({ type: "reasoning_delta", attempt_id: run.attemptId, text: "why" }));
    await log.append([run.turn(), run.usage()]);
    expect(bench.types.slice(4)).toEqual([
      "text_delta",
      "reasoning_delta",
      "model_turn_committed",
      "model_usage_recorded",
    ]);
    expect(bench.store.log.appends - appends).toBe(1);
  });

  test("[S-250] a progress message replaces the one before it", async () => {
    const { bench, log, run } = await running();
    await log.append([run.turn(), run.usage(), run.callStarted()]);
    for (const message of ["10 %", "20 %"]) log.appendStream(run.progress(message));
    await log.append([run.callEnded()]);
    expect(bench.applied.at(-2)?.payload).toEqual({
      type: "tool_call_progress",
      tool_call_id: run.callId,
      message: "20 %",
    });
  });

  test("[S-048] a delta outside its attempt is refused at once", async () => {
    const { log, run } = await running();
    await log.append([run.turn(), run.usage()]);
    expect(() => log.appendStream(run.text("late"))).toThrowError(/not active/);
  });
});

describe("a disk that fails", () => {
  test("[S-047] [S-246] [B104] a full disk fails the append alone; work goes on when space returns", async () => {
    const { bench, log, run } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    bench.store.log.failAppend = () => 0;
    for (let tries = 0; tries < 3; tries += 1) {
      const failure = log.append([run.turn(), run.usage()]);
      await expect(failure).rejects.toMatchObject({ code: "storage_failed" });
      await expect(failure).rejects.toThrow(/ENOSPC/);
    }
    expect([log.tipSeq, bench.seqs]).toEqual([4, [1, 2, 3, 4]]);
    bench.store.log.failAppend = undefined;
    await log.append([run.turn(), run.usage()]);
    expect(await next(tail, 2)).toMatchObject([{ seq: 5 }, { seq: 6 }]);
    await bench.reopen();
    expect([bench.seqs, bench.store.opened]).toEqual([[1, 2, 3, 4, 5, 6], 4]);
  });

  test("[S-246] a failed sync takes its block back; what was published before stays", async () => {
    const { bench, log, run } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    log.appendStream(run.text("streamed"));
    bench.store.log.failSync = true;
    await expect(log.append([run.turn(), run.usage()])).rejects.toMatchObject({
      code: "storage_failed",
    });
    expect(bench.types.at(-1)).toBe("text_delta");
    bench.store.log.failSync = false;
    // What was not durable is gone, as after a lost page.
    bench.store.log.bytes = bench.store.log.durable;
    await log.append([run.abandoned()]);
    expect(await next(tail, 2)).toMatchObject([
      { seq: 5, payload: { type: "text_delta", text: "streamed" } },
      { seq: 6, payload: { type: "attempt_abandoned" } },
    ]);
    await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("[S-246] what became durable since is not written a second time", async () => {
    const { bench, log, run } = await running();
    log.appendStream(run.text("streamed"));
    await log.append([diagnostic()]);
    bench.store.log.failSync = true;
    await expect(log.append([run.abandoned()])).rejects.toMatchObject({ code: "storage_failed" });
    bench.store.log.failSync = false;
    await log.append([run.abandoned()]);
    await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(bench.lines).toHaveLength(7);
  });

  test("[S-246] a log that lost what was durable is not written any more", async () => {
    const { bench, log, run } = await running();
    bench.store.log.failSync = true;
    await expect(log.append([run.abandoned()])).rejects.toMatchObject({ code: "storage_failed" });
    bench.store.log.failSync = false;
    const short = bench.store.log.durable.subarray(0, -1);
    bench.store.log.bytes = short;
    for (let tries = 0; tries < 2; tries += 1) {
      const failure = log.append([run.abandoned()]);
      await expect(failure).rejects.toMatchObject({ code: "storage_failed" });
      await expect(failure).rejects.toThrow(/shorter than what was already durable/);
    }
    expect(bench.store.log.bytes).toEqual(short);
  });

  test("[S-246] stream records that could not be written follow with the next append", async () => {
    const { bench, log, run } = await running();
    log.appendStream(run.text("one "));
    bench.store.log.failAppend = () => 0;
    await expect(log.append([run.abandoned()])).rejects.toMatchObject({ code: "storage_failed" });
    log.appendStream(run.text("two"));
    bench.store.log.failAppend = undefined;
    await log.append([run.abandoned()]);
    expect(bench.applied.slice(4).map(({ payload }) => payload)).toMatchObject([
      { type: "text_delta", text: "one two" },
      { type: "attempt_abandoned" },
    ]);
  });

  test("[S-246] whichever appends fail, the log holds exactly what was confirmed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom("ok", "append", "sync")), async (weather) => {
        const { bench, log } = await running();
        const confirmed: string[] = [];
        for (const [index, today] of weather.entries()) {
          bench.store.log.failAppend = today === "append" ? () => 0 : undefined;
          bench.store.log.failSync = today === "sync";
          const message = `event ${index}`;
          await log.append([diagnostic(message)]).then(
            () => confirmed.push(message),
            () => undefined,
          );
        }
        bench.store.log.failAppend = undefined;
        bench.store.log.failSync = false;
        await log.append([diagnostic("last")]);
        await bench.reopen();
        const read = bench.applied.slice(4).map(({ payload }) => payload);
        expect(read).toMatchObject([...confirmed, "last"].map((message) => ({ message })));
      }),
      { numRuns: 40 },
    );
  });
});

describe("the right to write", () => {
  test("[S-088] a log kept after its lease was released refuses to append", async () => {
    const { bench, log, run } = await running();
    bench.store.lease.release();
    expect(log.writable).toBe(false);
    await expect(log.append([run.completed()])).rejects.toMatchObject({ code: "session_foreign" });
    expect(() => log.appendStream(run.text("x"))).toThrowError(/in use by another/);
  });

  test("[S-056] [S-084] a log opened without a lease is read, not repaired and not written", async () => {
    const { bench } = await running();
    bench.store.log.bytes = Buffer.concat([bench.store.log.bytes, Buffer.from('{"torn')]);
    const { byteLength } = bench.store.log;
    const log = await bench.reopen(false);
    expect([bench.seqs, bench.store.log.byteLength]).toEqual([[1, 2, 3, 4], byteLength]);
    await expect(log.append([diagnostic()])).rejects.toMatchObject({ code: "session_foreign" });
    expect(await log.subscribe({ cursor: 0, live: true })).not.toHaveProperty("tail");
  });

  test("[S-056] with a lease the torn tail is cut off durably and writing goes on behind it", async () => {
    const { bench } = await running();
    const whole = bench.store.log.text;
    bench.store.log.bytes = Buffer.from(`${whole}{"session_id":"torn`);
    bench.store.log.durable = bench.store.log.bytes;
    const log = await bench.reopen();
    expect(bench.store.log.durable.toString()).toBe(whole);
    await log.append([diagnostic()]);
    await bench.reopen();
    expect(bench.seqs).toEqual([1, 2, 3, 4, 5]);
  });

  test("[S-058] writing goes on above a skipped event", async () => {
    const { bench } = await running();
    const lines = bench.lines;
    const last = (lines[3] ?? "").replace("model_attempt_started", "from_the_future");
    bench.store.log.bytes = Buffer.from([...lines.slice(0, 3), last, ""].join("\n"));
    const log = await bench.reopen();
    expect(log.skippedEvents).toEqual([{ seq: 4, reason: "unknown event type from_the_future" }]);
    const [event] = await log.append([diagnostic()]);
    expect(event?.seq).toBe(5);
  });
});

describe("reading back", () => {
  const logOf = async (count: number) => {
    const bench = new Bench();
    const drafts = [sessionCreated(), ...Array.from({ length: count - 1 }, () => diagnostic())];
    bench.store.log.bytes = Buffer.from(`${linesOf(bench.sessionId, drafts).join("\n")}\n`);
    return { bench, log: await bench.reopen() };
  };

  test("[S-063] [D-060] [D-064] pages and the tail lose and double nothing while events are appended", async () => {
    const { log } = await logOf(700);
    const seqs: number[] = [];
    let cursor = 0;
    let appending: Promise<unknown> = Promise.resolve();
    for (;;) {
      const page = await log.subscribe({ cursor, limit: 100, live: true });
      seqs.push(...page.events.map(({ seq }) => seq));
      cursor = seqs.at(-1) ?? 0;
      if (!page.more) {
        await log.append([diagnostic()]);
        for (const item of await next(page.tail, 1)) seqs.push((item as StoredEvent).seq);
        break;
      }
      if (cursor < 500) appending = log.append([diagnostic()]);
    }
    await appending;
    expect(seqs).toEqual(Array.from({ length: log.tipSeq }, (_, index) => index + 1));
  });

  test("a page near the end does not read the log from its start", async () => {
    const { bench, log } = await logOf(2000);
    const readFrom: number[] = [];
    const read = bench.store.log.read.bind(bench.store.log);
    bench.store.log.read = (fromByte = 0) => {
      readFrom.push(fromByte);
      return read(fromByte);
    };
    const { events } = await log.subscribe({ cursor: 1990, live: false });
    expect(events.map(({ seq }) => seq)).toEqual([
      1991, 1992, 1993, 1994, 1995, 1996, 1997, 1998, 1999, 2000,
    ]);
    expect(readFrom[0]).toBeGreaterThan(bench.store.log.byteLength / 2);
  });

  test("[D-064] a page counts what its answer says, not what the lines leave out", async () => {
    const { log, bench } = await running();
    const drafts = Array.from({ length: 20_000 }, (_, index) => diagnostic(`${index}`));
    for (let at = 0; at < drafts.length; at += 4000) await log.append(drafts.slice(at, at + 4000));
    let cursor = 0;
    const found: number[] = [];
    for (let more = true; more; ) {
      const page = await log.subscribe({ cursor, live: false });
      const answer = Buffer.byteLength(JSON.stringify(page.events));
      expect(answer).toBeLessThan(MAX_FRAME_BYTES);
      expect(answer).toBeGreaterThan(page.more ? MAX_FRAME_BYTES / 2 : 0);
      found.push(...page.events.map(({ seq }) => seq));
      cursor = found.at(-1) ?? 0;
      more = page.more;
    }
    expect(found).toHaveLength(bench.seqs.length);
    expect(bench.store.log.byteLength).toBeLessThan(found.length * 200);
  });

  test("[D-064] a page ends before its answer would exceed one frame", async () => {
    const { log, run } = await running();
    const input = "x".repeat(1_500_000);
    await log.append([run.input(input), run.input(input), run.input(input)]);
    const page = await log.subscribe({ cursor: 4, live: true });
    expect([page.events.map(({ seq }) => seq), page.more]).toEqual([[5, 6], true]);
    expect(page).not.toHaveProperty("tail");
  });

  test("[S-063] closing a log ends its tails with a gap", async () => {
    const { log } = await running();
    const { tail } = await log.subscribe({ cursor: 4, live: true });
    await log.close();
    expect(await next(tail, 1)).toEqual([{ gap: 4 }]);
    await expect(log.append([diagnostic()])).rejects.toMatchObject({ code: "shutting_down" });
  });
});

test("[S-048] an event that the projection cannot take in closes the log, and no number is used twice", async () => {
  const { bench, log } = await running();
  bench.stumblesAt = 6;
  const three = [diagnostic("one"), diagnostic("two"), diagnostic("three")];
  await expect(log.append(three)).rejects.toMatchObject({
    code: "engine",
    message: expect.stringContaining("open the session again"),
  });
  await expect(log.append([diagnostic()])).rejects.toMatchObject({ code: "shutting_down" });
  bench.stumblesAt = undefined;
  const again = await bench.reopen();
  await again.append([diagnostic()]);
  expect(bench.seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(again.skippedEvents).toEqual([]);
});
