import {
  PermissionAction,
  PermissionEffect,
  type PermissionRule,
  WildcardPattern,
} from "@cookie-agent/sdk/protocol";
import { nearestName } from "./nearest-name.ts";
import { TableReader } from "./table-reader.ts";

const MAX_RULES = 256;
const WORKSPACE_DIR = "${workspace_dir}";

/** Decodes the `permissions` map of an agent document into rules in authored order (C-076, C-083). */
export function decodePermissions(document: TableReader): PermissionRule[] {
  const authored = document.value("permissions");
  if (authored === undefined) return [];
  if (Array.isArray(authored)) {
    throw document.fail(
      "agent_permission",
      "permissions",
      "expected a map from action to effect or to patterns, not a list",
    );
  }
  const reader = new TableReader(authored, document.at("permissions"));
  const rules: PermissionRule[] = [];
  for (const action of reader.keys()) {
    rules.push(...decodeAction(reader, action));
    if (rules.length > MAX_RULES) {
      throw reader.fail("agent_permission", action, `over ${MAX_RULES} rules`, "remove some");
    }
  }
  return rules;
}

function decodeAction(reader: TableReader, name: string): PermissionRule[] {
  const action = PermissionAction.safeParse(name);
  if (!action.success) throw reader.fail("agent_permission", name, "unknown action", advise(name));
  const value = reader.value(name);
  if (typeof value === "string") {
    return [{ action: action.data, resource: "*", effect: decodeEffect(reader, name) }];
  }
  if (Array.isArray(value)) {
    throw reader.fail(
      "agent_permission",
      name,
      "expected a map from pattern to effect, not a list",
    );
  }
  const patterns = new TableReader(value, reader.at(name));
  return [...patterns.keys()].map((resource) => {
    const problem = patternProblem(resource, action.data);
    if (problem !== undefined) throw patterns.fail("agent_permission", resource, problem);
    return { action: action.data, resource, effect: decodeEffect(patterns, resource) };
  });
}

function decodeEffect(reader: TableReader, key: string): PermissionEffect {
  const effect = PermissionEffect.safeParse(reader.value(key));
  if (effect.success) return effect.data;
  throw reader.fail("agent_permission", key, "expected one of allow, ask, deny");
}

function patternProblem(pattern: string, action: PermissionAction): string | undefined {
  const literal = pattern.replaceAll(WORKSPACE_DIR, "");
  const readsOrWrites = action === "read" || action === "write";
  if (literal.includes("${") || (literal !== pattern && !readsOrWrites)) {
    return `the only expression is ${WORKSPACE_DIR}, in patterns of read and write`;
  }
  return WildcardPattern.safeParse(pattern).success ? undefined : "invalid wildcard pattern";
}

function advise(name: string): string {
  const actions = PermissionAction.options;
  const nearest = nearestName(name, actions);
  if (nearest !== undefined) return `did you mean ${nearest}?`;
  return `rules name actions (${actions.join(", ")}); for a tool use the action its manifest declares`;
}
