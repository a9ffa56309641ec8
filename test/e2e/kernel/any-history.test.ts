import {
  SessionCompact,
  SessionFork,
  type SessionId,
  SessionResume,
  SessionRevert,
  SessionUsage,
  type StoredEvent,
  UsageGlobal,
} from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isSummaryRequest, messagesOf } from "../../support/bounded-model.ts";
import { type Answer, pick, type RecordedRequest, type Wire } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const RUNS = process.env["COOKIE_FAULT_RUNS"] === "all" ? 150 : 4;

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("run"), calls: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("revert"), at: share }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("fork"), at: share }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("compact") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reopen") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("select"), at: share }) },
);
const STEPS = fc.array(step, { minLength: 4, maxLength: 12 });

const PRICES = `
[pricing.models."custom.test/scripted"]
input_per_million_usd = "2"
output_per_million_usd = "10"
cache_read_per_million_usd = "0.5"

[context_compaction]
keep_recent_tokens = 40
`;

/** Everything said has a mark of its own: prompts p, answers a, outputs r, summaries s. */
const marksIn = (value: unknown) => JSON.stringify(value).match(/[pars]\d+x/g) ?? [];

class Paid {
  input = 0;
  output = 0;
  cacheRead = 0;
  requests = 0;
}

/** Answers with marks; the same usage goes to `paid`. */
function markingModel(
  paid: Paid,
  calls: () => number,
): { answer: Answer; turns: RecordedRequest[] } {
  let marks = 0;
  let wanted = -1;
  const turns: RecordedRequest[] = [];
  const answer: Answer = (request) => {
    marks += 1;
    const usage = { input: 1000 + marks, output: marks, cacheRead: marks % 7 };
    // This wire reports what came from the cache beside the input.
    paid.input += usage.input + (request.wire === "anthropic" ? usage.cacheRead : 0);
    paid.output += usage.output;
    paid.cacheRead += usage.cacheRead;
    paid.requests += 1;
    if (isSummaryRequest(request)) return { text: `s${marks}x`, usage };
    turns.push(request);
    wanted = wanted < 0 ? calls() : wanted;
    const text = `a${marks}x`;
    if (wanted === 0) {
      wanted = -1;
      return { text, usage };
    }
    const made = Array.from({ length: wanted }, (_, index) => ({
      name: "bash",
      arguments: { command: `printf r; echo ${marks}${index}x` },
    }));
    wanted = 0;
    return { text, usage, calls: made };
  };
  return { answer, turns };
}

/** What counts, told by the definition alone: each marker hides what lies behind its event. */
function visible(events: readonly StoredEvent[]): StoredEvent[] {
  let seen: StoredEvent[] = [];
  for (const event of events) {
    const { payload } = event;
    if (payload.type === "session_reverted") {
      seen = seen.filter(({ seq }) => seq <= payload.through_seq);
    }
    seen.push(event);
  }
  return seen;
}

interface Said {
  readonly seq: number;
  marks: string[];
}

/** The marks that the next request is to hold, in order. */
function expectedMarks(events: readonly StoredEvent[]): string[] {
  let said: Said[] = [];
  let open: { readonly outputs: Map<number, string[]>; readonly said: Said } | undefined;
  for (const { seq, payload } of visible(events)) {
    switch (payload.type) {
      case "session_reverted":
        open = undefined;
        break;
      case "user_input_submitted":
        said.push({ seq, marks: marksIn(payload.input) });
        open = undefined;
        break;
      case "model_turn_committed":
        said.push({ seq, marks: marksIn(payload.turn.content) });
        open = { outputs: new Map(), said: { seq, marks: [] } };
        said.push(open.said);
        break;
      case "tool_call_terminated": {
        if (open === undefined) break;
        open.outputs.set(payload.owner.content_index, marksIn(payload.result?.output ?? ""));
        open.said.marks = [...open.outputs].sort(([a], [b]) => a - b).flatMap(([, marks]) => marks);
        break;
      }
      case "context_checkpoint_committed": {
        const { boundaries, checkpoint } = payload;
        const from = boundaries.recent_from_seq ?? boundaries.source_through_seq + 1;
        const summary = checkpoint.type === "internal_summary" ? checkpoint.summary : "";
        said = [{ seq: 0, marks: marksIn(summary) }, ...said.filter((one) => one.seq >= from)];
        open = undefined;
        break;
      }
      default:
        break;
    }
  }
  return said.flatMap(({ marks }) => marks);
}

/** Every call has its one result right behind it, no id comes twice, and the wire's order of roles holds. */
function expectValid(request: RecordedRequest): void {
  const messages = messagesOf(request);
  if (request.wire === "openai-responses") {
    const ids = (type: string) =>
      messages.filter((one) => pick(one, "type") === type).map((one) => pick(one, "call_id"));
    const calls = ids("function_call");
    expect(new Set(calls).size).toBe(calls.length);
    expect(ids("function_call_output")).toEqual(calls);
    return;
  }
  if (request.wire === "anthropic") {
    const roles = messages.map((message) => pick(message, "role"));
    expect(roles).toEqual(roles.map((_, index) => (index % 2 === 0 ? "user" : "assistant")));
  }
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  for (const message of messages) {
    const content = pick(message, "content");
    const blocks = Array.isArray(content) ? (content as unknown[]) : [];
    const results =
      request.wire === "anthropic"
        ? blocks.flatMap((one) =>
            pick(one, "type") === "tool_result" ? [pick(one, "tool_use_id")] : [],
          )
        : pick(message, "role") === "tool"
          ? [pick(message, "tool_call_id")]
          : [];
    if (request.wire === "anthropic") {
      expect(results).toEqual(open);
      open = [];
    } else if (results.length > 0) {
      expect(open.shift()).toBe(results[0]);
    } else expect(open).toEqual([]);
    const calls = (
      request.wire === "anthropic"
        ? blocks.filter((one) => pick(one, "type") === "tool_use")
        : ((pick(message, "tool_calls") ?? []) as unknown[])
    ).map((one) => pick(one, "id"));
    for (const id of calls) {
      expect(seen.has(id)).toBe(false);
      seen.add(id);
    }
    open.push(...calls);
  }
  expect(open).toEqual([]);
}

test.each<Wire>(["openai-chat", "openai-responses", "anthropic"])(
  "[S-061] [S-229] [S-230] whatever was run, reverted, forked and summarized, the next request is what counts, and what was paid is summed once: %s",
  { timeout: 600_000 },
  async (wire) => {
    const paid = new Paid();
    let calls = 0;
    const model = markingModel(paid, () => calls);
    let kernel: TestKernel = await openTestKernel({ wire, config: PRICES });
    kernel.server.otherwise(model.answer);
    let prompts = 0;
    const say = async (session: SessionId | undefined) => {
      prompts += 1;
      const ran = await kernel.run(
        `p${prompts}x ${"and more ".repeat(60)}`,
        session === undefined ? {} : { session },
      );
      expect(ran.end.type).toBe("run_completed");
      return ran.sessionId;
    };
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        let session = await say(undefined);
        const sessions = [session];
        const seqAt = async (at: number) => {
          const events = await kernel.client.readEvents(session);
          const from = events.find(({ payload }) => payload.type === "user_input_submitted");
          const first = from?.seq ?? 1;
          return first + Math.floor(at * ((events.at(-1)?.seq ?? 1) - first + 1));
        };
        const check = async () => {
          const events = await kernel.client.readEvents(session);
          const expected = expectedMarks(events);
          const made = model.turns.length;
          await say(session);
          const request = model.turns[made];
          if (request === undefined) throw new Error("no request was made");
          expectValid(request);
          const shown = marksIn(messagesOf(request));
          expect(shown).toEqual([...expected, `p${prompts}x`]);
          expect(new Set(shown).size).toBe(shown.length);
        };
        for (const each of steps) {
          switch (each.kind) {
            case "run":
              calls = each.calls;
              await check();
              break;
            case "revert": {
              const through_seq = await seqAt(each.at);
              await kernel.client.request(SessionRevert, { session_id: session, through_seq });
              break;
            }
            case "fork": {
              const request = { session_id: session, through_seq: await seqAt(each.at) };
              session = (await kernel.client.request(SessionFork, request)).session_id;
              sessions.push(session);
              break;
            }
            case "compact":
              await kernel.client.request(SessionCompact, { session_id: session, focus: null });
              break;
            case "reopen":
              await kernel.close();
              kernel = await openTestKernel({ on: kernel });
              break;
            case "select":
              session = sessions[Math.floor(each.at * sessions.length)] ?? session;
              break;
          }
          await kernel.client.request(SessionResume, { session_id: session });
        }
        calls = 0;
        await check();
        const { usage } = await kernel.client.request(UsageGlobal, {});
        expect(usage).toMatchObject({
          input_tokens: paid.input,
          output_tokens: paid.output,
          cache_read_tokens: paid.cacheRead,
          request_count: paid.requests,
        });
        const micros = (paid.input - paid.cacheRead) * 2 + paid.cacheRead * 0.5 + paid.output * 10;
        expect(usage.estimated_cost_usd).toBeCloseTo(micros / 1e6, 9);
        const own = await kernel.client.request(SessionUsage, { session_id: session });
        const counted = visible(await kernel.client.readEvents(session)).flatMap(({ payload }) =>
          payload.type === "model_usage_recorded" ||
          payload.type === "internal_agent_usage_recorded"
            ? [payload.usage.output_tokens ?? 0]
            : [],
        );
        expect(own.usage.request_count).toBe(counted.length);
        expect(own.usage.output_tokens).toBe(counted.reduce((sum, each) => sum + each, 0));
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  },
);
