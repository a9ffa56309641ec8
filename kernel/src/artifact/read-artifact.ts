import {
  type ArtifactsRead,
  CookieError,
  type ParamsOf,
  type ResultInput,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { findManifestStream } from "./artifact-manifest.ts";
import type { ArtifactStore, OpenedArtifact } from "./artifact-store.ts";
import { type ArtifactAddress, parseArtifactUri } from "./artifact-uri.ts";

/** Which part of an artifact: `limit` lines from line `offset`, starting `byte` bytes into it. */
export interface ArtifactPageRequest {
  readonly uri: string;
  readonly offset?: number | undefined;
  readonly byte?: number | undefined;
  readonly limit?: number | undefined;
}

export type ArtifactPage = ResultInput<typeof ArtifactsRead> & { readonly text: string };

/** A range of bytes, at most 1 MiB of them. */
export interface ArtifactRangeRequest {
  readonly uri: string;
  readonly byteOffset: number;
  readonly byteLimit: number;
}

const MAX_PAGE_LINES = 2000;
const MAX_PAGE_BYTES = 2 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** A page or a range, as the wire asks for it. */
export function readArtifact(
  store: ArtifactStore,
  rootId: SessionId,
  params: ParamsOf<typeof ArtifactsRead>,
): Promise<ResultInput<typeof ArtifactsRead>> {
  const { uri, byte_offset: byteOffset, byte_limit: byteLimit } = params;
  return byteOffset === undefined || byteLimit === undefined
    ? readArtifactPage(store, rootId, params)
    : readArtifactRange(store, rootId, { uri, byteOffset, byteLimit });
}

/**
 * One page of stored text, exactly as stored (T-142). Rejects with `artifact_uri`, `artifact_missing`,
 * `artifact_corrupt`, `invalid_arguments` (limit 0), `execution_failed` (past the end, not text) or `resource_limit`
 * (several lines over 2 MiB; the message names a limit that fits). Memory is one page, wherever it lies.
 */
export async function readArtifactPage(
  store: ArtifactStore,
  rootId: SessionId,
  request: ArtifactPageRequest,
): Promise<ArtifactPage> {
  if (request.limit === 0) throw new CookieError("invalid_arguments", "limit must be at least 1");
  const address = parseArtifactUri(request.uri);
  const artifact = await openAddress(store, rootId, address);
  try {
    const start = await findStart(artifact, request.offset ?? 0, request.byte ?? 0);
    const limit = Math.min(request.limit ?? MAX_PAGE_LINES, MAX_PAGE_LINES);
    const page = await readLines(artifact, start, limit);
    const end = start.position + page.bytes.byteLength;
    const more = end < artifact.byteLength;
    return {
      text: decodeText(page.bytes),
      next_offset: more ? start.offset + page.newlines : null,
      next_byte: more ? page.nextByte : null,
      total_lines: artifact.lineCount,
      total_bytes: artifact.byteLength,
      source: sourceOf(address),
    };
  } finally {
    await artifact.close();
  }
}

function sourceOf({ stream }: ArtifactAddress): string {
  return stream === null ? "artifact" : `artifact.${stream}`;
}

/** Some bytes of an artifact, text or not. Rejects as a page does; a range may begin at the very end. */
export async function readArtifactRange(
  store: ArtifactStore,
  rootId: SessionId,
  { uri, byteOffset, byteLimit }: ArtifactRangeRequest,
): Promise<ResultInput<typeof ArtifactsRead>> {
  const address = parseArtifactUri(uri);
  const artifact = await openAddress(store, rootId, address);
  try {
    const { byteLength } = artifact;
    if (byteOffset > byteLength) {
      throw new CookieError(
        "execution_failed",
        `byte_offset ${byteOffset} is past the end: the artifact has ${byteLength} bytes`,
      );
    }
    const bytes = await artifact.read(byteOffset, byteLimit);
    const end = byteOffset + bytes.byteLength;
    return {
      data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
      next_offset: null,
      next_byte: end < byteLength ? end : null,
      total_lines: artifact.lineCount,
      total_bytes: byteLength,
      source: sourceOf(address),
    };
  } finally {
    await artifact.close();
  }
}

async function openAddress(
  store: ArtifactStore,
  rootId: SessionId,
  address: ArtifactAddress,
): Promise<OpenedArtifact> {
  const artifact = await store.open(rootId, address.digest);
  if (address.stream === null) return artifact;
  try {
    return await store.open(rootId, await findManifestStream(artifact, address.stream));
  } finally {
    await artifact.close();
  }
}

/** A place in an artifact: line, byte in that line, byte in the file. */
interface Position {
  readonly offset: number;
  readonly byte: number;
  readonly position: number;
}

async function findStart(
  artifact: OpenedArtifact,
  offset: number,
  byte: number,
): Promise<Position> {
  if (offset === 0 && byte === 0 && artifact.byteLength === 0) {
    return { offset, byte, position: 0 };
  }
  if (offset >= artifact.lineCount) {
    throw new CookieError(
      "execution_failed",
      `offset ${offset} is past the end: the artifact has ${artifact.lineCount} lines`,
    );
  }
  const lineStart = await skipLines(artifact, offset);
  if (byte === 0) return { offset, byte, position: lineStart };
  const position = await moveToCharacter(artifact, lineStart, lineStart + byte);
  if (!(await isWithinLine(artifact, lineStart, position))) {
    throw new CookieError("execution_failed", `byte ${byte} is past the end of line ${offset}`);
  }
  return { offset, byte: position - lineStart, position };
}

/** The byte at which line `offset` begins. */
async function skipLines(artifact: OpenedArtifact, offset: number): Promise<number> {
  let left = offset;
  for (let position = 0; left > 0; ) {
    const chunk = await artifact.read(position, CHUNK_BYTES);
    if (chunk.length === 0) break;
    const lines = endOfLines(chunk, left);
    left -= lines.newlines;
    position += lines.byteLength;
    if (left === 0) return position;
  }
  return 0;
}

/** Moves back from the middle of a character to its beginning. */
async function moveToCharacter(
  artifact: OpenedArtifact,
  lineStart: number,
  wanted: number,
): Promise<number> {
  const from = Math.max(lineStart, wanted - 3);
  const bytes = await artifact.read(from, wanted - from + 1);
  let position = wanted;
  while (position > from && isContinuation(bytes[position - from])) position -= 1;
  return position;
}

async function isWithinLine(
  artifact: OpenedArtifact,
  lineStart: number,
  position: number,
): Promise<boolean> {
  if (position >= artifact.byteLength) return false;
  for (let at = lineStart; at < position; ) {
    const chunk = await artifact.read(at, Math.min(CHUNK_BYTES, position - at));
    if (chunk.includes(NEWLINE)) return false;
    if (chunk.byteLength === 0) return false;
    at += chunk.byteLength;
  }
  return true;
}

interface PageBytes {
  readonly bytes: Uint8Array;
  readonly newlines: number;
  /** Where to go on inside the line that was cut; 0 after a whole line. */
  readonly nextByte: number;
}

async function readLines(
  artifact: OpenedArtifact,
  start: Position,
  limit: number,
): Promise<PageBytes> {
  const chunks: Uint8Array[] = [];
  let byteLength = 0;
  let newlines = 0;
  while (newlines < limit && byteLength < MAX_PAGE_BYTES) {
    const want = Math.min(CHUNK_BYTES, MAX_PAGE_BYTES - byteLength);
    const chunk = await artifact.read(start.position + byteLength, want);
    if (chunk.byteLength === 0) break;
    const end = endOfLines(chunk, limit - newlines);
    newlines += end.newlines;
    chunks.push(chunk.subarray(0, end.byteLength));
    byteLength += end.byteLength;
  }
  const bytes = Buffer.concat(chunks, byteLength);
  const atEnd = start.position + byteLength === artifact.byteLength;
  if (atEnd || newlines === limit) return { bytes, newlines, nextByte: 0 };
  if (newlines > 0) throw overPage(newlines);
  const cut = bytes.subarray(0, lastCharacterEnd(bytes));
  return { bytes: cut, newlines: 0, nextByte: start.byte + cut.byteLength };
}

/** How much of `chunk` belongs to the next `wanted` lines. */
function endOfLines(chunk: Uint8Array, wanted: number): { byteLength: number; newlines: number } {
  const { length } = chunk;
  let newlines = 0;
  for (let i = 0; i < length; i += 1) {
    if (chunk[i] !== NEWLINE) continue;
    newlines += 1;
    if (newlines === wanted) return { byteLength: i + 1, newlines };
  }
  return { byteLength: length, newlines };
}

/** The length without a last character whose end is not in `bytes`. */
function lastCharacterEnd(bytes: Uint8Array): number {
  let start = bytes.byteLength - 1;
  while (start > bytes.byteLength - 4 && isContinuation(bytes[start])) start -= 1;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + length <= bytes.byteLength ? bytes.byteLength : start;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new CookieError("execution_failed", "the artifact is not UTF-8 text", { cause: error });
  }
}

function overPage(fittingLines: number): CookieError {
  return new CookieError(
    "resource_limit",
    `the page is larger than ${MAX_PAGE_BYTES} bytes; ask again with limit ${fittingLines} or less`,
  );
}
