import { CookieError, type ResultOf, type ToolsPrepare } from "@cookie-agent/sdk/protocol";
import { isNestedDeeper, MAX_JSON_DEPTH } from "../support/json-depth.ts";
import type { ResolvedTool } from "./plugin-facts.ts";

/** Holds a preparation against what the tool declared (E-082, E-083). Throws `prepare_failed`. */
export function checkPrepared(
  prepared: ResultOf<typeof ToolsPrepare>,
  tool: ResolvedTool,
): ResultOf<typeof ToolsPrepare> {
  const { name, permission_name: permission } = tool.declaration;
  if (tool.prepare.mode !== "dynamic") {
    throw new CookieError("prepare_failed", `the tool ${name} is not prepared by its plugin`);
  }
  if (isNestedDeeper(prepared.arguments, MAX_JSON_DEPTH)) {
    throw new CookieError(
      "prepare_failed",
      `the arguments prepared for ${name} are nested too deeply`,
    );
  }
  for (const { action, label } of prepared.resources) {
    if (!tool.prepare.actions.includes(action)) {
      throw new CookieError(
        "prepare_failed",
        `the preparation of ${name} names the action ${action}, which the tool does not declare`,
      );
    }
    const mayBeAnything = action !== "plugin" || label === null || label === permission;
    if (!mayBeAnything && !label.startsWith(`${permission} `)) {
      throw new CookieError(
        "prepare_failed",
        `a label of ${name} must be ${permission} or start with it and a space`,
      );
    }
  }
  return prepared;
}
