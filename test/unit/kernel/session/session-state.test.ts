import type { ClientKey, EventPayloadOf, SessionId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { SessionState } from "../../../../kernel/src/session/session-state.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

type Change = EventPayloadOf<"session_title_committed">["change"];

const KEY = "rename" as ClientKey;
const BY_USER: Change = { kind: "user_set", title: "Mine", client_rename_id: KEY };
const CLEARED: Change = { kind: "user_clear", client_rename_id: KEY };
const RESET: Change = { kind: "user_reset", client_rename_id: KEY };
const EXCERPT: Change = { kind: "fallback_set", title: "Excerpt" };
const BY_AGENT: Change = {
  kind: "internal_agent_set",
  title: "Asked",
  invocation_id: createId(),
};

test.for([
  ["a person's title over one that comes after it", [BY_USER, BY_AGENT], "Mine"],
  ["a person's title over one that came before it", [EXCERPT, BY_USER], "Mine"],
  ["no title where a person took it away", [BY_AGENT, CLEARED, EXCERPT], null],
  ["a new one after a reset", [BY_USER, RESET, BY_AGENT], "Asked"],
  ["the first of two automatic ones", [BY_AGENT, EXCERPT], "Asked"],
] as const)("[S-028] a session keeps %s", ([, changes, title]) => {
  const state = new SessionState();
  for (const [index, change] of changes.entries()) {
    state.apply({
      session_id: createId<SessionId>(),
      run_id: null,
      seq: index + 1,
      timestamp: "2030-01-01T00:00:00.000Z",
      payload: { type: "session_title_committed", change, input_through_seq: 0 },
    });
  }
  expect(state.title).toBe(title);
});
