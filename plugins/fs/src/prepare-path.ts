import { homedir } from "node:os";
import type { PreparedCall } from "@cookie-agent/sdk/plugin";
import { cutText } from "./cut-text.ts";
import { type LocatedTarget, locateTarget } from "./locate-target.ts";
import { displayPath, labelTarget } from "./path-label.ts";
import { resolvePath } from "./resolve-path.ts";
import { WeightBudget } from "./weight-budget.ts";

const MAX_DISPLAY_BYTES = 512;
const MAX_TITLE_BYTES = 1024;

/** Of this process: every preparation that still waits for its call. */
const budget = new WeightBudget();

/** Where a call happens. */
export interface CallPlace {
  readonly cwd: string;
  readonly workspaceRoot: string;
}

/** What a path argument leads to, with its share of the budget taken. */
export interface PreparedPath {
  readonly target: LocatedTarget;
  /** Gives the share back; may be called again. */
  release(): void;
}

/** Locates a path argument for a call to come (T 2.0). */
export function preparePath(filePath: string, place: CallPlace): PreparedPath {
  const path = resolvePath(filePath, { cwd: place.cwd, homeDir: homedir() });
  const target = locateTarget(path);
  return { target, release: budget.reserve(target.canonical) };
}

/** Runs the rest of a preparation; when it fails, nothing stays reserved. */
export async function holding<T>(prepared: PreparedPath, rest: () => T | Promise<T>): Promise<T> {
  try {
    return await rest();
  } catch (error) {
    prepared.release();
    throw error;
  }
}

/** The permission side of a prepared path: one resource per label. */
export function pathResources(
  action: "read" | "write",
  target: LocatedTarget,
  place: CallPlace,
): PreparedCall["resources"] {
  return labelTarget(target, place.workspaceRoot).map((label) => ({
    action,
    label,
    lifetime: "process_local",
  }));
}

/** What stands beside the tool's name; at most 512 bytes. */
export function primaryArgument(target: LocatedTarget, place: CallPlace, suffix = ""): string {
  const shown = displayPath(target.path, place.workspaceRoot, homedir());
  return cutText(shown, MAX_DISPLAY_BYTES - Buffer.byteLength(suffix)) + suffix;
}

export function resultTitle(title: string): string {
  return cutText(title, MAX_TITLE_BYTES);
}
