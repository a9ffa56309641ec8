import { expect, test } from "vitest";
import type { AgentDocument } from "../../../../kernel/src/config/agent-document.ts";
import { internalAgentOf } from "../../../../kernel/src/config/internal-agents.ts";

const none = new Map<string, AgentDocument>();

test.for([
  ["approval", "approval", 30_000, 2048],
  ["context_compaction", "compaction", 180_000, 4096],
  ["session_title", "title", 10_000, 128],
] as const)(
  "[C-093] [S-226] %s is answered by %s within %s ms and %s tokens",
  ([kind, id, timeoutMs, maxOutputTokens]) => {
    const document = internalAgentOf(none, kind);
    expect(document).toMatchObject({
      id,
      mode: "internal",
      source: "built_in",
      enabled: true,
      timeoutMs,
      maxOutputTokens,
      models: [{ model: "${parent_model}", variant: null }],
      permissions: [],
    });
    expect(document.prompt.trim()).not.toBe("");
  },
);

test("[C-087] an authored document replaces a built-in one as a whole", () => {
  const authored: AgentDocument = {
    ...internalAgentOf(none, "session_title"),
    source: "user",
    models: [],
    prompt: "Ours.",
    timeoutMs: 1,
    maxOutputTokens: 2,
  };
  expect(internalAgentOf(new Map([["title", authored]]), "session_title")).toBe(authored);
  expect(internalAgentOf(new Map([["title", authored]]), "approval").source).toBe("built_in");
});
