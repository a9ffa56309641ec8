import { pick, type RecordedRequest } from "../../support/model-server.ts";

/**
 * What makes a request's history invalid for a vendor: calls without exactly one result in the message or messages
 * right after them, results without a call. Empty for a valid one.
 */
export function pairingProblems(request: RecordedRequest): string[] {
  const messages = pick(request.body, "messages");
  if (!Array.isArray(messages)) return ["the request has no messages"];
  return request.wire === "anthropic" ? anthropicProblems(messages) : chatProblems(messages);
}

/** The ids of all calls in a request's history. */
export function callIdsOf(request: RecordedRequest): string[] {
  const messages = pick(request.body, "messages");
  if (!Array.isArray(messages)) return [];
  return messages.flatMap(request.wire === "anthropic" ? toolUses : chatCalls);
}

function chatProblems(messages: readonly unknown[]): string[] {
  const problems: string[] = [];
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const message of messages) {
    if (pick(message, "role") === "tool") {
      const id = String(pick(message, "tool_call_id"));
      if (!open.delete(id)) problems.push(`result without an open call: ${id}`);
      continue;
    }
    for (const id of open) problems.push(`call without a result: ${id}`);
    open.clear();
    for (const id of chatCalls(message)) {
      if (seen.has(id)) problems.push(`id used twice: ${id}`);
      seen.add(id);
      open.add(id);
    }
  }
  for (const id of open) problems.push(`call without a result: ${id}`);
  return problems;
}

function anthropicProblems(messages: readonly unknown[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  let open = new Set<string>();
  let lastRole: unknown = "assistant";
  for (const message of messages) {
    const role = pick(message, "role");
    if (role === lastRole) problems.push(`two messages of ${String(role)} in a row`);
    lastRole = role;
    for (const id of blocks(message, "tool_result", "tool_use_id")) {
      if (!open.delete(id)) problems.push(`result without an open call: ${id}`);
    }
    for (const id of open) problems.push(`call without a result: ${id}`);
    open = new Set(toolUses(message));
    for (const id of open) {
      if (seen.has(id)) problems.push(`id used twice: ${id}`);
      seen.add(id);
    }
  }
  for (const id of open) problems.push(`call without a result: ${id}`);
  return problems;
}

function chatCalls(message: unknown): string[] {
  const calls = pick(message, "tool_calls");
  return Array.isArray(calls) ? calls.map((call: unknown) => String(pick(call, "id"))) : [];
}

function toolUses(message: unknown): string[] {
  return blocks(message, "tool_use", "id");
}

function blocks(message: unknown, type: string, idName: string): string[] {
  const content = pick(message, "content");
  if (!Array.isArray(content)) return [];
  return content
    .filter((block: unknown) => pick(block, "type") === type)
    .map((block: unknown) => String(pick(block, idName)));
}
