import type { PermissionMode } from "@cookie-agent/sdk/protocol";
import { usageError } from "../exit-code.ts";

const MODES: readonly PermissionMode[] = [
  "auto_approve",
  "auto_approve_n",
  "auto_approve_y",
  "ask",
  "yolo",
];

/** The mode behind `--permission-mode`; `_` is accepted for `-` (C 7.3). */
export function parsePermissionMode(text: string): PermissionMode {
  const mode = MODES.find((known) => known === text.replaceAll("-", "_"));
  if (mode !== undefined) return mode;
  const names = MODES.map((known) => known.replaceAll("_", "-")).join(", ");
  throw usageError(`--permission-mode does not know "${text}"; it takes ${names}`);
}
