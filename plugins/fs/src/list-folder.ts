import { readdir } from "node:fs/promises";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { diskError } from "./disk-error.ts";
import type { HeldFolder } from "./held-folder.ts";
import { fitsPage, MAX_PAGE_BYTES, pageTooLarge } from "./page-bound.ts";

/** One page of a folder's entries (T-058). */
export interface FolderPage {
  /** `NAME` and a newline for every entry, `NAME/` for a folder. */
  readonly text: string;
  readonly shown: number;
  readonly totalEntries: number;
}

const CONTROL = /\p{Cc}/gu;

/** Lists a folder in the order of its names' bytes; links are not followed and nothing is hidden. */
export async function listFolder(
  folder: HeldFolder,
  offset: number,
  limit: number,
): Promise<FolderPage> {
  const entries = await readEntries(folder);
  if (offset > 0 && offset >= entries.length) {
    const count = `${entries.length} ${entries.length === 1 ? "entry" : "entries"}`;
    throw new ToolError(
      "execution_failed",
      `offset ${offset} is past the end: the directory has ${count}`,
    );
  }
  entries.sort((a, b) => Buffer.compare(a.name, b.name));
  const lines: string[] = [];
  let byteLength = 0;
  for (const entry of entries.slice(offset, offset + limit)) {
    const line = `${showName(entry.name)}${entry.isDirectory() ? "/" : ""}\n`;
    byteLength += Buffer.byteLength(line);
    if (byteLength > MAX_PAGE_BYTES) throw pageTooLarge(lines.length);
    lines.push(line);
  }
  const fitting = fitsPage(lines);
  if (fitting < lines.length) throw pageTooLarge(fitting);
  return { text: lines.join(""), shown: lines.length, totalEntries: entries.length };
}

async function readEntries(folder: HeldFolder) {
  try {
    return await readdir(folder.at(""), { withFileTypes: true, encoding: "buffer" });
  } catch (error) {
    throw diskError(`cannot list ${folder.path}`, error);
  }
}

/** A control character in a name must not look like the end of the entry. */
function showName(name: Buffer): string {
  return name.toString("utf8").replace(CONTROL, "\ufffd");
}
