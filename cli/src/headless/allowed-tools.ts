import type { PermissionAction } from "@cookie-agent/sdk/protocol";
import { usageError } from "../exit-code.ts";

export interface AllowRule {
  readonly action: PermissionAction;
  readonly resource: string;
}

const BARE_ACTIONS: readonly PermissionAction[] = [
  "read",
  "write",
  "bash",
  "delegate",
  "mcp",
  "plugin",
];

/** `--allowed-tools` as overlay rules: repeatable, with commas; anything it does not know is a usage error (C 7.3). */
export function parseAllowedTools(values: readonly string[]): AllowRule[] {
  return values.flatMap((list) => {
    const names = list
      .split(",")
      .map((value) => value.trim())
      .filter((value) => value !== "");
    // As of a variable that is not set: whoever wrote it meant to allow something.
    if (names.length === 0) throw usageError(`--allowed-tools names nothing; it takes ${TAKEN}`);
    return names.map(parseOne);
  });
}

const TAKEN = `${BARE_ACTIONS.join(", ")}, plugin:<name> and skill:<name>`;

function parseOne(value: string): AllowRule {
  const action = BARE_ACTIONS.find((known) => known === value);
  if (action !== undefined) return { action, resource: "*" };
  const plugin = /^plugin:([a-z][a-z0-9_]*)$/.exec(value)?.[1];
  if (plugin !== undefined) return { action: "plugin", resource: `${plugin} *` };
  const skill = /^skill:([a-z0-9]+(?:-[a-z0-9]+)*)$/.exec(value)?.[1];
  if (skill !== undefined) return { action: "skill", resource: skill };
  throw usageError(`--allowed-tools does not know "${value}"; it takes ${TAKEN}`);
}
