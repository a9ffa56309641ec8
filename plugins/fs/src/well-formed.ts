import { ToolError } from "@cookie-agent/sdk/plugin";

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Half a surrogate pair has no UTF-8 form; writing or finding U+FFFD in its place would be a silent change. */
export function expectWellFormed(name: string, text: string): void {
  if (!LONE_SURROGATE.test(text)) return;
  throw new ToolError("invalid_arguments", `${name} is not well-formed Unicode`, {
    data: { field: name },
  });
}
