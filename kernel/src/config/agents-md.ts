import { join } from "node:path";
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

/** Reads `AGENTS.md` of the user and of the workspace: text for the model, so links and missing files are fine. */
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
  { maxBytes, onDiagnostic }: ContextDocumentOptions,
): Promise<ContextDocument | undefined> {
  let read: BoundedRead;
  try {
    read = await readBoundedFile(path, maxBytes, { followLinks: true });
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
