import { basename } from "node:path";
import { sha256Hex } from "../support/digest.ts";

const SUFFIX_LENGTH = 32;

/** The part of a store's name that identifies the directory: 16 hex digits of its canonical path (S-068). */
export function workdirHash(cwd: string): string {
  return sha256Hex(cwd).slice(0, 16);
}

/** The name of a new store: the hash, and what of the directory's name helps people (S-068). */
export function workdirKey(cwd: string): string {
  const suffix = basename(cwd)
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, "-")
    .replace(/-+/g, "-")
    .slice(0, SUFFIX_LENGTH)
    .replace(/^[-_]+|[-_]+$/g, "");
  return suffix === "" ? workdirHash(cwd) : `${workdirHash(cwd)}-${suffix}`;
}

/** The store of a directory among the names of all stores; the hash alone counts (S-069). */
export function findWorkdirKeys(cwd: string, names: readonly string[]): string[] {
  const hash = workdirHash(cwd);
  return names.filter((name) => name === hash || name.startsWith(`${hash}-`)).sort();
}

/** True for a name that a store can have. */
export function isWorkdirKey(name: string): boolean {
  return /^[0-9a-f]{16}(?:-.+)?$/.test(name);
}
