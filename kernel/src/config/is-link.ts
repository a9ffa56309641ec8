import { lstat } from "node:fs/promises";

/** Tells a link that leads nowhere from a path where nothing is, once opening it said ENOENT. */
export async function isLink(path: string): Promise<boolean> {
  const facts = await lstat(path).catch(() => undefined);
  return facts?.isSymbolicLink() ?? false;
}
