import { type BigIntStats, lstatSync, readlinkSync } from "node:fs";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { diskError } from "./disk-error.ts";
import { equalName } from "./equal-name.ts";

/** What a path led to when it was last looked at; no file is open behind it. */
export interface LocatedTarget {
  /** Absolute lexical path. */
  readonly path: string;
  /** The path with every link followed; for an absent target the missing rest is appended. */
  readonly canonical: string;
  /** Device and inode of every folder passed and text of every link followed, in order. */
  readonly trail: string;
  /** The object itself, null when absent. */
  readonly leaf: BigIntStats | null;
  /** Names that do not exist yet, outermost first; empty when the target exists. */
  readonly missing: readonly string[];
  /** The nearest existing folder of an absent target, the parent folder of an existing one. */
  readonly folder: { readonly path: string; readonly dev: bigint; readonly ino: bigint };
  /** Names on disk that were used for names equal under Unicode normalization. */
  readonly respelled: readonly string[];
}

interface Step {
  readonly name: string;
  readonly fromLink: boolean;
}

/** The kernel's own bound on links in one path. */
const MAX_LINKS = 40;

/**
 * Follows a path one component at a time, as the operating system would, and records what it passed (T-051).
 *
 * A dangling or cyclic link, a file where a folder is needed and an unreadable folder are `execution_failed`.
 */
export function locateTarget(path: string): LocatedTarget {
  const root = statOf("/");
  if (root === undefined) throw new ToolError("execution_failed", "the filesystem root is missing");
  const pending = steps(path, false);
  const trail: string[] = [];
  const respelled: string[] = [];
  let links = 0;
  let current = "";
  let leaf = root;
  let folder = root;
  let folderPath = "";
  for (let step = pending.pop(); step !== undefined; step = pending.pop()) {
    if (!leaf.isDirectory()) {
      throw new ToolError("execution_failed", `${path}: ${current} is not a folder`);
    }
    trail.push(`${leaf.dev}:${leaf.ino}`);
    if (step.name === "..") {
      current = current.slice(0, Math.max(0, current.lastIndexOf("/")));
      leaf = statOf(current === "" ? "/" : current) ?? root;
      continue;
    }
    let next = `${current}/${step.name}`;
    let stats = statOf(next);
    if (stats === undefined) {
      const name = equalName(current === "" ? "/" : current, step.name);
      if (name !== undefined) {
        next = `${current}/${name}`;
        stats = statOf(next);
        respelled.push(name);
      }
    }
    if (stats === undefined) {
      if (step.fromLink) {
        throw new ToolError(
          "execution_failed",
          `${path} is a dangling link: ${next} does not exist`,
        );
      }
      const missing = [step.name, ...pending.reverse().map(({ name }) => name)];
      return {
        path,
        canonical: `${current}/${missing.join("/")}`,
        trail: trail.join(" "),
        leaf: null,
        missing,
        folder: { path: current === "" ? "/" : current, dev: leaf.dev, ino: leaf.ino },
        respelled,
      };
    }
    if (stats.isSymbolicLink()) {
      links += 1;
      if (links > MAX_LINKS) {
        throw new ToolError("execution_failed", `${path} leads through a cycle of links`);
      }
      const text = linkText(next);
      trail.push(`${stats.dev}:${stats.ino}>${JSON.stringify(text)}`);
      pending.push(...steps(text, true));
      if (text.startsWith("/")) {
        current = "";
        leaf = root;
      }
      continue;
    }
    folder = leaf;
    folderPath = current;
    current = next;
    leaf = stats;
  }
  return {
    path,
    canonical: current === "" ? "/" : current,
    trail: trail.join(" "),
    leaf,
    missing: [],
    folder: { path: folderPath === "" ? "/" : folderPath, dev: folder.dev, ino: folder.ino },
    respelled,
  };
}

/** Components as a stack: the first one is popped first. */
function steps(path: string, fromLink: boolean): Step[] {
  return path
    .split("/")
    .filter((name) => name !== "" && name !== ".")
    .map((name) => ({ name, fromLink }))
    .reverse();
}

function statOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    throw diskError(`cannot look at ${path}`, error);
  }
}

function linkText(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    throw diskError(`cannot read the link ${path}`, error);
  }
}
