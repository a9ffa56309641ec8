import { CookieError, type ToolCallResult, utf8Length } from "@cookie-agent/sdk/protocol";
import { isNestedDeeper, MAX_JSON_DEPTH } from "../support/json-depth.ts";
import { cutUtf8 } from "../support/safe-text.ts";
import type { ResolvedTool } from "./plugin-facts.ts";

const MAX_METADATA_BYTES = 64 * 1024;
const MAX_DISPLAY_BYTES = 64 * 1024;

/** Holds a call's answer against its declaration and what was streamed (E-092, E-093). Throws `protocol_violation`. */
export function checkAnswer(
  answer: ToolCallResult,
  tool: ResolvedTool,
  streamed: boolean,
): ToolCallResult {
  if (streamed && answer.streamed !== true) {
    throw violation(
      "the result repeats text after output was streamed; answer with streamed: true",
    );
  }
  if (answer.content !== undefined && tool.output.mode !== "single") {
    throw violation("a tool with named streams answers with outputs, not with content");
  }
  if (answer.outputs !== undefined) checkOutputs(answer.outputs, tool);
  if (isNestedDeeper(answer.metadata, MAX_JSON_DEPTH)) {
    throw violation("the metadata is nested too deeply");
  }
  if (
    answer.metadata !== undefined &&
    utf8Length(JSON.stringify(answer.metadata)) > MAX_METADATA_BYTES
  ) {
    throw violation(`the metadata is larger than ${MAX_METADATA_BYTES} bytes`);
  }
  if (answer.display === undefined) return answer;
  return { ...answer, display: cutUtf8(answer.display, MAX_DISPLAY_BYTES) };
}

function checkOutputs(
  outputs: NonNullable<ToolCallResult["outputs"]>,
  { output }: ResolvedTool,
): void {
  if (output.mode !== "named") {
    throw violation("a tool with a single output answers with content, not with outputs");
  }
  const seen = new Set<string>();
  for (const { stream } of outputs) {
    if (!output.streams.includes(stream)) throw violation(`the stream ${stream} is not declared`);
    if (seen.has(stream)) throw violation(`the stream ${stream} is given twice`);
    seen.add(stream);
  }
}

function violation(problem: string): CookieError {
  return new CookieError("protocol_violation", problem);
}
