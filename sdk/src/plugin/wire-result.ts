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
  if (sentText && !("streamed" in answer)) {
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

function completionOf(answer: ToolAnswer): ResultInput<typeof ToolsCall> {
  if ("content" in answer) return { content: answer.content };
  if ("outputs" in answer) return { outputs: [...answer.outputs] };
  return { streamed: true };
}
