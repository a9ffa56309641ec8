import { PermissionMode } from "@cookie-agent/sdk/protocol";
import { usageError } from "../exit-code.ts";

/** The mode behind `--permission-mode`; `_` is accepted for `-` (C 7.3). */
export function parsePermissionMode(text: string): PermissionMode {
  const mode = PermissionMode.safeParse(text.replaceAll("-", "_"));
  if (mode.success) return mode.data;
  const names = PermissionMode.options.map((known) => known.replaceAll("_", "-")).join(", ");
  throw usageError(`--permission-mode does not know "${text}"; it takes ${names}`);
}
