import type { EventPayload } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  type InternalAgentCall,
  type InternalAgentOwner,
  runInternalAgent,
} from "../../../../kernel/src/internal-agent/run-internal-agent.ts";
import { bindOfflineModel } from "../../../../kernel/src/model/adaptors/offline.ts";

const NEVER = new AbortController().signal;

/** An owner that writes down what is recorded and when it had to be durable. */
function ownerOf(changes: Partial<InternalAgentOwner> = {}) {
  const record: string[] = [];
  const payloads: EventPayload[] = [];
  const owner: InternalAgentOwner = {
    runId: null,
    log: {
      hold: (drafts) => {
        for (const { payload } of drafts) {
          record.push(payload.type.replace("internal_agent_", ""));
          payloads.push(payload);
        }
      },
      flush: async () => void record.push("flush"),
    },
    sources: {
      agents: new Map(),
      models: { bind: async () => undefined, resolveVariant: () => undefined },
    },
    parentModels: [bindOfflineModel()],
    retry: { standardRetries: 0, overloadRetries: 0, backoffCeilingMs: 1 },
    ...changes,
  };
  return { owner, record, payloads };
}

function callOf(text: string, asked: string[] = []): InternalAgentCall {
  return {
    kind: "session_title",
    input: { summary: "words", digest: "0".repeat(64) },
    request: (prompt) => {
      asked.push(prompt);
      return { system: "", history: [{ role: "user", text }], tools: [] };
    },
    judgesInput: true,
  };
}

describe("an internal agent", () => {
  test("is on record before a model is asked; its answer becomes so with what follows", async () => {
    const { owner, record } = ownerOf();
    const outcome = await runInternalAgent(owner, callOf("Hi"), NEVER);
    expect(outcome).toMatchObject({ kind: "completed", text: "Offline session" });
    expect(record).toEqual(["started", "flush", "usage_recorded", "completed"]);
  });

  test("[S-226] takes 16,384 tokens of four bytes where the context is unknown, and not one more", async () => {
    const { owner, payloads } = ownerOf();
    const fits = await runInternalAgent(owner, callOf("x".repeat(16_384 * 4)), NEVER);
    expect(fits.kind).toBe("completed");
    const over = await runInternalAgent(owner, callOf("x".repeat(16_384 * 4 + 1)), NEVER);
    expect(over).toMatchObject({ kind: "failed", failure: { code: "input_too_large" } });
    expect(payloads.at(-1)).toMatchObject({ failure: { code: "input_too_large" } });
  });

  test("[S-226] has at least one token for its input, however small its model", async () => {
    const small = { ...bindOfflineModel(), contextTokens: 10, outputTokens: 100 };
    const { owner } = ownerOf({ parentModels: [small] });
    expect((await runInternalAgent(owner, callOf("four"), NEVER)).kind).toBe("completed");
    expect((await runInternalAgent(owner, callOf("fives"), NEVER)).kind).toBe("failed");
  });

  test("asks no model once that is forbidden, nor the next one", async () => {
    const asked: string[] = [];
    const stream = () => {
      throw new Error("nobody may be asked");
    };
    const model = { ...bindOfflineModel(), stream };
    const { owner, record } = ownerOf({
      parentModels: [model, model],
      forbids: () => "budget_exceeded:max_tokens",
    });
    const outcome = await runInternalAgent(owner, callOf("Hi", asked), NEVER);
    expect(outcome).toMatchObject({
      kind: "failed",
      failure: {
        code: "agent_unavailable",
        message: expect.stringContaining("budget_exceeded:max_tokens"),
      },
    });
    expect(record).toEqual(["started", "flush", "failed"]);
    expect(asked).toHaveLength(1);
  });

  test("whose owner has stopped already is cancelled on record", async () => {
    const { owner, record } = ownerOf();
    const call: InternalAgentCall = {
      ...callOf("Hi"),
      request: () => ({ system: "", history: [], tools: [] }),
    };
    const model = bindOfflineModel();
    const late = new AbortController();
    const stream: typeof model.stream = async function* (request, signal) {
      late.abort();
      signal.throwIfAborted();
      yield* model.stream(request, signal);
    };
    const stopped = { ...owner, parentModels: [{ ...model, stream }] };
    const outcome = await runInternalAgent(stopped, call, late.signal);
    expect(outcome.kind).toBe("cancelled");
    expect(record.at(-1)).toBe("cancelled");
  });

  test("a request that cannot be made is a failure of the agent, not of its owner", async () => {
    const { owner, record } = ownerOf();
    const call: InternalAgentCall = {
      ...callOf("Hi"),
      request: () => Promise.reject(new Error("no history")),
    };
    expect(await runInternalAgent(owner, call, NEVER)).toMatchObject({
      kind: "failed",
      failure: { code: "model_failure", message: "no history" },
    });
    expect(record).toEqual(["started", "flush", "failed"]);
  });
});
