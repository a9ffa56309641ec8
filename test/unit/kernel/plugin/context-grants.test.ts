import type { ContextId, RunId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { ContextGrants } from "../../../../kernel/src/plugin/context-grants.ts";
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

test("[E-117] an unknown context and one of another plugin are refused", () => {
  const id = new ContextGrants().grant("call", context());
  expect(() => new ContextGrants().resolve(id, "request")).toThrow(invalid);
  expect(() => new ContextGrants().resolve("guess" as ContextId, "request")).toThrow(invalid);
});
