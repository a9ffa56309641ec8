import type { ContextId, RunId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { ContextGrants } from "../../../../kernel/src/plugin/context-grants.ts";
import { EmitTokens } from "../../../../kernel/src/plugin/emit-tokens.ts";
import { PLUGIN_LIMITS } from "../../../../kernel/src/plugin/plugin-limits.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { SESSION } from "./open-host.ts";

const context = () => ({
  plugin: "sample",
  sessionId: SESSION,
  rootSessionId: SESSION,
  runId: createId<RunId>(),
  toolCallId: createId<ToolCallId>(),
});
const invalid = expect.objectContaining({ code: "context_invalid" });

test("[E-116] a context is good until its request is answered", () => {
  const grants = new ContextGrants();
  const facts = context();
  const id = grants.grant("call", facts);
  expect(grants.resolve(id, "call")).toBe(facts);
  expect(grants.resolve(id, "request")).toBe(facts);
  grants.revoke(id);
  expect(() => grants.resolve(id, "call")).toThrow(invalid);
});

test("[E-116] a request's context does not serve what needs a call", () => {
  const grants = new ContextGrants();
  const id = grants.grant("request", context());
  expect(() => grants.resolve(id, "call")).toThrow(invalid);
});

test("[E-116] with the connection every context ends, and what waits under one is told", () => {
  const grants = new ContextGrants();
  const ids = [grants.grant("call", context()), grants.grant("request", context())] as const;
  const { signal } = grants.hold(ids[0]);
  grants.revokeAll();
  for (const id of ids) expect(() => grants.resolve(id, "request")).toThrow(invalid);
  expect(signal.aborted).toBe(true);
});

test("[E-117] an unknown context and one of another plugin are refused", () => {
  const id = new ContextGrants().grant("call", context());
  expect(() => new ContextGrants().resolve(id, "request")).toThrow(invalid);
  expect(() => new ContextGrants().resolve("guess" as ContextId, "request")).toThrow(invalid);
});

test("[E-116] [E-148] a publisher's context publishes once and goes on serving, and is spent with its request", () => {
  const grants = new ContextGrants();
  const tokens = new EmitTokens(PLUGIN_LIMITS.emitTokens);
  grants.emitTokens = tokens;
  const facts = context();
  const [used, unused] = [grants.grant("call", facts), grants.grant("call", facts)];
  expect(tokens.redeem(used)).toEqual({ state: "good", sessionId: SESSION });
  expect(grants.resolve(used, "call")).toBe(facts);
  expect(grants.sessionOf(used)).toBe(SESSION);
  grants.revoke(unused);
  expect(tokens.redeem(unused)).toEqual({ state: "spent", sessionId: SESSION });
  grants.revokeAll();
  expect(tokens.redeem(unused)).toEqual({ state: "unknown" });
});
