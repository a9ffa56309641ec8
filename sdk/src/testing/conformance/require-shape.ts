import type * as z from "zod";
import { checkValue } from "../../protocol/check-value.ts";
import { ToolDeclaration } from "../../protocol/tool.ts";
import { excerpt, isRecord } from "../answer.ts";
import { fail } from "./verdict.ts";

/** What a plugin sent, as the protocol has it; the finding names the member that is wrong. */
export function requireShape<S extends z.ZodType>(
  schema: S,
  value: unknown,
  { did, must }: { readonly did: string; readonly must: string },
): z.output<S> {
  const checked = checkValue(schema, value, "result");
  if (checked.ok) return checked.value;
  return fail(`${did} with a wrong ${checked.field} (${checked.problem})`, must);
}

export function requireDeclaration(tool: unknown): ToolDeclaration {
  const name = isRecord(tool) ? excerpt(String(tool["name"])) : "a tool";
  return requireShape(ToolDeclaration, tool, {
    did: `declares ${name}`,
    must: "declare it as section 6.1 says",
  });
}
