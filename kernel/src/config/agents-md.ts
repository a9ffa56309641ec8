import { realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { hasCode } from "../support/has-code.ts";
import { type BoundedRead, readBoundedFile } from "./read-bounded-file.ts";

/** One `AGENTS.md`, in the shape of the event that records it. */
export interface ContextDocument {
  readonly source: "user" | "workspace";
  readonly content: string;
  readonly truncated: boolean;
  readonly original_bytes: number;
}

export interface ContextDocumentOptions {
  readonly root: string;
  readonly workspaceRoot: string;
  /** Of each file. */
  readonly maxBytes: number;
  /** Takes one sentence for a file that is there but cannot be used. */
  onDiagnostic?(text: string): void;
}

/**
 * Reads `AGENTS.md` of the user and of the workspace: text for the model, so links and missing files are fine. Nobody
 * is asked first, so a workspace's link may lead only to a Markdown file of the workspace.
 */
export async function readContextDocuments(
  options: ContextDocumentOptions,
): Promise<ContextDocument[]> {
  const documents: ContextDocument[] = [];
  for (const source of ["user", "workspace"] as const) {
    const directory = source === "user" ? options.root : options.workspaceRoot;
    const document = await readDocument(source, join(directory, "AGENTS.md"), options);
    if (document !== undefined) documents.push(document);
  }
  return documents;
}

async function readDocument(
  source: ContextDocument["source"],
  path: string,
  { workspaceRoot, maxBytes, onDiagnostic }: ContextDocumentOptions,
): Promise<ContextDocument | undefined> {
  let read: BoundedRead;
  try {
    if (source === "user") {
      read = await readBoundedFile(path, maxBytes, { followLinks: true });
    } else {
      const target = await targetInWorkspace(path, workspaceRoot);
      if (target === null) {
        onDiagnostic?.(`${path} is a link to something other than a .md file of the workspace`);
        return undefined;
      }
      read = await readBoundedFile(target, maxBytes, { followLinks: false });
    }
  } catch {
    onDiagnostic?.(`${path} cannot be read`);
    return undefined;
  }
  switch (read.kind) {
    case "missing":
      return undefined;
    case "not_regular":
      onDiagnostic?.(`${path} is not a regular file`);
      return undefined;
    case "bytes":
      return read.bytes.length === 0
        ? undefined
        : document(source, read.bytes, read.bytes.length, false);
    case "too_large":
      return document(source, cutAtCharacter(read.head, maxBytes), read.byteLength, true);
  }
}

/** The file that a path of the workspace leads to; null when it must not be read unasked. */
async function targetInWorkspace(path: string, workspaceRoot: string): Promise<string | null> {
  let target: string;
  try {
    target = await realpath(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return path;
    throw error;
  }
  const root = await realpath(workspaceRoot);
  const isInside = target.startsWith(root.endsWith(sep) ? root : root + sep);
  return isInside && target.toLowerCase().endsWith(".md") ? target : null;
}

function document(
  source: ContextDocument["source"],
  bytes: Uint8Array,
  byteLength: number,
  truncated: boolean,
): ContextDocument {
  const content = new TextDecoder().decode(bytes);
  return { source, content, truncated, original_bytes: byteLength };
}

function cutAtCharacter(bytes: Uint8Array, maxBytes: number): Uint8Array {
  let end = Math.min(maxBytes, bytes.length);
  // A continuation byte right after the cut means that the cut is inside a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}
