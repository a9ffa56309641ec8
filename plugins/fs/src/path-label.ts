import { realpathSync } from "node:fs";
import { ToolError } from "@cookie-agent/sdk/plugin";
import type { LocatedTarget } from "./locate-target.ts";

const CONTROL = /\p{Cc}/u;
const MAX_LABEL_BYTES = 4096;

/**
 * The permission labels of a target: the lexical one and, when a link or another Unicode form of the name leads
 * elsewhere, the canonical one (T-051, T-052). Both must be allowed.
 */
export function labelTarget(target: LocatedTarget, workspaceRoot: string): string[] {
  const lexical = relativeLabel(target.path, workspaceRoot);
  if (target.canonical === target.path) return [checkLabel(lexical)];
  const canonical = relativeLabel(target.canonical, realRoot(workspaceRoot));
  return canonical === lexical
    ? [checkLabel(lexical)]
    : [checkLabel(lexical), checkLabel(canonical)];
}

/** Relative to the workspace root inside it, `.` for the root itself, absolute outside. */
export function relativeLabel(path: string, root: string): string {
  if (path === root) return ".";
  const prefix = root.endsWith("/") ? root : `${root}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** The path as people see it: workspace-relative, else below `~`, else absolute. */
export function displayPath(path: string, workspaceRoot: string, homeDir: string): string {
  const relative = relativeLabel(path, workspaceRoot);
  if (relative !== path || homeDir === "") return relative;
  const fromHome = relativeLabel(path, homeDir);
  if (fromHome === ".") return "~";
  return fromHome === path ? path : `~/${fromHome}`;
}

function realRoot(workspaceRoot: string): string {
  try {
    return realpathSync.native(workspaceRoot);
  } catch {
    return workspaceRoot;
  }
}

function checkLabel(label: string): string {
  if (CONTROL.test(label)) {
    throw new ToolError(
      "unsupported_security",
      `the target ${JSON.stringify(label)} has a control character in its name`,
    );
  }
  if (Buffer.byteLength(label) > MAX_LABEL_BYTES) {
    throw new ToolError("execution_failed", `the path is longer than ${MAX_LABEL_BYTES} bytes`);
  }
  return label;
}
