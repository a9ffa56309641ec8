import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CookieError } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { durableReplace, syncDirectory } from "../support/durable-replace.ts";
import { withFileLock } from "../support/file-lock.ts";
import { hasCode } from "../support/has-code.ts";
import { makeDurableDirectory } from "../support/make-directory.ts";
import { findWorkdirKeys, workdirKey } from "./workdir-key.ts";

const LAYOUT_VERSION = 2;
const LAYOUT_FILE = "layout.json";
const CWD_FILE = "cwd";
const Layout = z.object({ version: z.literal(LAYOUT_VERSION) });

export interface LocatedStore {
  readonly directory: string;
  readonly diagnostics: readonly string[];
}

/** The folder of a working directory's store, which need not exist yet; refuses a layout it does not know. */
export async function locateStore(sessionsDir: string, cwd: string): Promise<LocatedStore> {
  const keys = findWorkdirKeys(cwd, await namesIn(sessionsDir));
  const [key = workdirKey(cwd), ...others] = keys;
  const directory = join(sessionsDir, key);
  const problem = `several session stores belong to ${cwd}; ${directory} is used`;
  await checkLayout(directory);
  return { directory, diagnostics: others.length === 0 ? [] : [problem] };
}

/** The working directories that have a store, as these say it themselves. */
export async function listProjects(sessionsDir: string): Promise<string[]> {
  const cwds: string[] = [];
  for (const name of (await namesIn(sessionsDir)).sort()) {
    const cwd = await readText(join(sessionsDir, name, CWD_FILE)).catch(() => undefined);
    if (cwd !== undefined && findWorkdirKeys(cwd, [name]).length > 0) cwds.push(cwd);
  }
  return [...new Set(cwds)];
}

/** Makes the store before its first session; several processes may do so at once (S 3.4). */
export async function initializeStore(directory: string, cwd: string): Promise<void> {
  try {
    await makeDurableDirectory(directory);
  } catch (error) {
    throw unusable(directory, error);
  }
  if ((await readText(join(directory, LAYOUT_FILE))) !== undefined) {
    await checkLayout(directory);
    if ((await readText(join(directory, CWD_FILE))) === cwd) return;
  }
  await withFileLock(join(directory, ".store.lock"), async () => {
    await checkLayout(directory);
    const layout = join(directory, LAYOUT_FILE);
    if ((await readText(layout)) === undefined) {
      // Another process may have made the folder and not yet synced its name.
      await syncDirectory(dirname(directory));
      await durableReplace(layout, Buffer.from(`${JSON.stringify({ version: LAYOUT_VERSION })}\n`));
    }
    const cwdFile = join(directory, CWD_FILE);
    if ((await readText(cwdFile)) !== cwd) await durableReplace(cwdFile, Buffer.from(cwd));
  });
}

/** Rejects with `storage_failed` for a store of another layout. */
export async function checkLayout(directory: string): Promise<void> {
  const text = await readText(join(directory, LAYOUT_FILE));
  if (text === undefined) {
    const names = (await namesIn(directory)).filter((name) => !isOfInitialization(name));
    if (names.length === 0) return;
    throw unknownLayout(directory, `it has no ${LAYOUT_FILE}`);
  }
  if (!Layout.safeParse(parseJson(text)).success) {
    throw unknownLayout(directory, `its ${LAYOUT_FILE} does not say version ${LAYOUT_VERSION}`);
  }
}

/** True for what another process may just be making. */
function isOfInitialization(name: string): boolean {
  return name.startsWith(".") || name.startsWith(`${LAYOUT_FILE}.`);
}

function unknownLayout(directory: string, problem: string): CookieError {
  return new CookieError(
    "storage_failed",
    `the session store ${directory} cannot be opened: ${problem}; ` +
      "use the version of cookie that wrote it, or move the folder away",
  );
}

function unusable(directory: string, cause: unknown): CookieError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new CookieError(
    "storage_failed",
    `the session store ${directory} cannot be used (${reason}); ` +
      "make it a directory that you can write to, or choose another one with --data-dir",
    { cause },
  );
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw unusable(directory, error);
  }
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
