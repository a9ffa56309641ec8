import {
  CookieError,
  checkValue,
  isCookieError,
  ToolDeclaration,
} from "@cookie-agent/sdk/protocol";
import { isJsonObject } from "../support/json-object.ts";
import { safeText } from "../support/safe-text.ts";
import { checkDynamicDeclaration } from "./check-declaration.ts";
import type { LoadedPlugin } from "./loaded-plugin.ts";
import type { ResolvedTool } from "./plugin-facts.ts";
import { resolveTool } from "./trust-tier.ts";

/**
 * One declaration of a running process, held against shape, schema and tier (E-034, E-114, E-134). Rejects with
 * `invalid_declaration`.
 */
export async function judgeDynamicTool(
  declared: unknown,
  plugin: Pick<LoadedPlugin, "manifest" | "subject">,
): Promise<ResolvedTool> {
  const checked = checkValue(ToolDeclaration, declared, "the declaration");
  if (!checked.ok) throw refused(`${safeText(checked.field, 128)}: ${checked.problem}`);
  const tool = checked.value;
  if (plugin.manifest?.tools?.some(({ name }) => name === tool.name)) {
    throw refused("the manifest declares this tool; a dynamic one needs another name");
  }
  // The tools of the MCP bridge have names of their own (E-070).
  const isBridge = plugin.manifest?.provides?.includes("mcp") === true;
  if (isBridge) requireMcpShape(tool);
  await checkDynamicDeclaration(tool, { tier: plugin.subject.tier, anyName: isBridge });
  return resolveTool(tool, plugin.subject);
}

/** The name of a tool that somebody tried to declare, for people to read; empty when there is none. */
export function claimedName(declared: unknown): string {
  const name = isJsonObject(declared) ? declared["name"] : undefined;
  return typeof name === "string" && name !== "" ? safeText(name, 64) : "";
}

/** What was wrong with a declaration, in one line. */
export function declarationProblem(error: unknown): string {
  if (!isCookieError(error, "invalid_declaration")) throw error;
  return safeText(error.message, 512);
}

/** A permission rule for an MCP tool names the tool; a declaration that asks for less would pass it by. */
function requireMcpShape({ prepare }: ToolDeclaration): void {
  const resources = prepare?.mode === "static" ? prepare.resources : [];
  const [resource] = resources;
  if (resources.length === 1 && resource?.action === "mcp" && resource.tool === true) return;
  throw refused(
    'prepare: a tool of an MCP server has the one resource {"action":"mcp","tool":true}',
  );
}

function refused(problem: string): CookieError {
  return new CookieError("invalid_declaration", problem);
}
