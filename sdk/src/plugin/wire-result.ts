import { CookieError } from "../protocol/errors.ts";
import type { ResultInput } from "../protocol/method.ts";
import type { ToolsCall } from "../protocol/plugin-methods.ts";
import type { ToolAnswer } from "./tool-invocation.ts";

/** The wire form of an answer (E-092). Text after streamed text is refused here, where the tool can be named (E-093). */
export function toWireResult(
  answer: ToolAnswer,
  tool: string,
  sentText: boolean,
): ResultInput<typeof ToolsCall> {
  const problem = problemOf(answer);
  if (problem !== undefined) {
    throw new CookieError(
      "protocol_violation",
      `tool ${tool} answered ${problem}; answer {content: text}, {outputs: [{stream, text}]} or {streamed: true}`,
    );
  }
  if (sentText && !("streamed" in answer && answer.streamed)) {
    throw new CookieError(
      "protocol_violation",
      `tool ${tool} streamed its output and then answered with text; answer {streamed: true}`,
    );
  }
  const { isError, failed, title, display, metadata, attachments } = answer;
  return {
    ...completionOf(answer),
    ...(isError === undefined ? {} : { is_error: isError }),
    ...(failed === undefined ? {} : { failed }),
    ...(title === undefined ? {} : { title }),
    ...(display === undefined ? {} : { display }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(attachments === undefined ? {} : { attachments }),
  };
}

const KINDS = ["content", "outputs", "streamed"];
const OPTIONS = ["isError", "failed", "title", "display", "metadata", "attachments"];

/** What an author without a type checker did wrong; a wrong member would be lost without a word. */
function problemOf(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null) return kindOf(answer);
  if (Array.isArray(answer)) return "an array";
  const members = Object.entries<unknown>(answer as Record<string, unknown>).filter(
    ([, value]) => value !== undefined,
  );
  const unknown = members.find(([name]) => !KINDS.includes(name) && !OPTIONS.includes(name));
  if (unknown !== undefined) return `with an unknown member ${unknown[0]}`;
  const kinds = members.filter(([name]) => KINDS.includes(name));
  const [first] = kinds;
  if (first === undefined) return "with none of these";
  if (kinds.length > 1) return "with more than one of these";
  const [kind, value] = first;
  if (kind === "content") {
    return typeof value === "string" ? undefined : `a content that is ${kindOf(value)}`;
  }
  if (kind === "outputs") {
    return Array.isArray(value) ? undefined : `outputs that are ${kindOf(value)}`;
  }
  return value === true ? undefined : "a streamed that is not true";
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function completionOf(answer: ToolAnswer): ResultInput<typeof ToolsCall> {
  if ("content" in answer && answer.content !== undefined) return { content: answer.content };
  if ("outputs" in answer && answer.outputs !== undefined) return { outputs: [...answer.outputs] };
  return { streamed: true };
}
