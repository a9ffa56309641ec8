import { lstat, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { CookieError } from "@cookie-agent/sdk/protocol";
import { ARTIFACT_SCHEME } from "../artifact/artifact-uri.ts";

/**
 * The permission labels of a path argument (T 2.0): the lexical one and, when links lead elsewhere, the canonical
 * one; both must pass, so a link never widens access. `artifact://…` stays as given.
 *
 * @param base Absolute and canonical; `cwd` is where relative paths start.
 */
export async function pathLabels(
  path: string,
  base: { cwd: string; workspaceRoot: string },
): Promise<string[]> {
  if (path.startsWith(ARTIFACT_SCHEME)) return [path];
  const absolute = normalize(expandHome(path), base.cwd);
  const lexical = labelOf(absolute, base.workspaceRoot);
  const canonical = labelOf(await canonicalPath(absolute), base.workspaceRoot);
  return canonical === lexical ? [lexical] : [lexical, canonical];
}

function expandHome(path: string): string {
  if (!path.startsWith("~")) return path;
  if (path !== "~" && !path.startsWith("~/")) {
    throw new CookieError(
      "execution_failed",
      `${path}: homes of other users are not expanded; give an absolute path, or ./${path} for a file of that name`,
    );
  }
  const home = homedir();
  return isAbsolute(home) ? join(home, path.slice(1)) : path;
}

function normalize(path: string, cwd: string): string {
  if (path === "") throw new CookieError("execution_failed", "the path is empty");
  if (path.includes("\0")) throw new CookieError("execution_failed", "the path holds a NUL byte");
  const start = isAbsolute(path) ? "" : cwd;
  let depth = 0;
  for (const component of `${start}/${path}`.split("/")) {
    if (component === "" || component === ".") continue;
    depth += component === ".." ? -1 : 1;
    if (depth < 0) {
      throw new CookieError("unsupported_security", `${path} leads above the root directory`);
    }
  }
  const absolute = resolve(cwd, path);
  if (basename(absolute) === "") {
    throw new CookieError("unsupported_security", `${path} is the root directory itself`);
  }
  return absolute;
}

/** The existing part resolved through links, plus the rest that does not exist yet. */
async function canonicalPath(absolute: string): Promise<string> {
  const missing: string[] = [];
  for (let existing = absolute; ; existing = dirname(existing)) {
    const found = await resolveLinks(existing);
    if (found !== undefined) return join(found, ...missing);
    missing.unshift(basename(existing));
  }
}

async function resolveLinks(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ELOOP") throw linkError(path, "is part of a circle of links");
    if (code !== "ENOENT" && code !== "ENOTDIR") {
      throw new CookieError("execution_failed", `${path} cannot be resolved: ${String(code)}`, {
        cause: error,
      });
    }
  }
  if (await isLink(path)) throw linkError(path, "is a link whose target does not exist");
  return undefined;
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}

function linkError(path: string, problem: string): CookieError {
  return new CookieError("execution_failed", `${path} ${problem}`);
}

function labelOf(absolute: string, workspaceRoot: string): string {
  const inside = relative(workspaceRoot, absolute);
  if (inside === "") return ".";
  const outside = inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside);
  return (outside ? absolute : inside).replaceAll(sep, "/");
}
