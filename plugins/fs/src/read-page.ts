import { ToolError } from "@cookie-agent/sdk/plugin";
import { nameMedia } from "./name-media.ts";
import { fitsPage, MAX_PAGE_BYTES, pageTooLarge } from "./page-bound.ts";
import { BOM, TextScan } from "./text-scan.ts";
import { wholeCharacters } from "./utf8-check.ts";

/** Which lines of a file are wanted. */
export interface PageRequest {
  /** Zero-based first line. */
  readonly offset: number;
  /** Where to start inside that line, in bytes. */
  readonly byte: number;
  /** Number of lines. */
  readonly limit: number;
}

/** One page of a text file. */
export interface TextPage {
  /** `N: LINE` and a newline for every line. */
  readonly text: string;
  readonly totalLines: number;
  readonly nextOffset: number | null;
  readonly nextByte: number | null;
}

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Reads one page out of a stream of bytes (T 2.1). Everything is read once, to count the lines and to know that
 * it is text, but only the page is kept.
 */
export async function readPage(
  chunks: AsyncIterable<Buffer>,
  path: string,
  request: PageRequest,
): Promise<TextPage> {
  const collector = new PageCollector(request);
  const scan = new TextScan();
  let first = true;
  for await (const chunk of chunks) {
    if (first) refuseMedia(chunk, path);
    first = false;
    if (!scan.push(chunk)) break;
    collector.push(chunk);
  }
  scan.expectUtf8(path);
  return collector.finish(path);
}

function refuseMedia(head: Buffer, path: string): void {
  const media = nameMedia(head);
  if (media === undefined) return;
  throw new ToolError(
    "execution_failed",
    `${path} is a ${media}, not text; it cannot be shown here`,
  );
}

function renderEmpty(path: string, request: PageRequest): TextPage {
  if (request.offset > 0) throw pastTheEnd(request.offset, 0);
  if (request.byte > 0) throw pastTheLine(path, request, 0);
  return { text: "", totalLines: 0, nextOffset: null, nextByte: null };
}

function pastTheEnd(offset: number, totalLines: number): ToolError {
  const count = `${totalLines} ${totalLines === 1 ? "line" : "lines"}`;
  return new ToolError(
    "execution_failed",
    `offset ${offset} is past the end: the file has ${count}`,
  );
}

function pastTheLine(path: string, request: PageRequest, lineBytes: number): ToolError {
  return new ToolError(
    "execution_failed",
    `byte ${request.byte} is past the end of the line at offset ${request.offset} of ${path}, which has ${lineBytes} bytes`,
  );
}

/** Follows the bytes of a file and keeps those of the wanted lines, up to the page bound. */
class PageCollector {
  readonly #request: PageRequest;
  /** Position in the first line from which bytes are kept: a little early, to find a character's start. */
  readonly #keepFrom: number;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #line = 0;
  #lineBytes = 0;
  #firstLineBytes = 0;
  #started = false;
  #closed = false;

  constructor(request: PageRequest) {
    this.#request = request;
    this.#keepFrom = Math.max(0, request.byte - 3);
  }

  push(chunk: Buffer): void {
    let at = 0;
    if (!this.#started) {
      this.#started = true;
      if (chunk.subarray(0, BOM.length).equals(BOM)) at = BOM.length;
    }
    let keepStart: number | undefined;
    while (at < chunk.length && !this.#closed) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline === -1 ? chunk.length : newline + 1;
      if (this.#line >= this.#request.offset) {
        keepStart ??= Math.min(at + this.#skipped(), end);
        this.#closed = this.#keptBytes + end - keepStart > MAX_PAGE_BYTES;
      }
      this.#advance((newline === -1 ? end : newline) - at, newline !== -1);
      at = end;
    }
    if (keepStart !== undefined) this.#keep(chunk.subarray(keepStart, at));
    if (at < chunk.length) this.#count(chunk.subarray(at));
  }

  /** How many of the next bytes lie before the wanted place in the first line. */
  #skipped(): number {
    const inFirstLine = this.#line === this.#request.offset;
    return inFirstLine ? Math.max(0, this.#keepFrom - this.#lineBytes) : 0;
  }

  #advance(lineBytes: number, lineEnds: boolean): void {
    this.#lineBytes += lineBytes;
    if (this.#line === this.#request.offset) this.#firstLineBytes = this.#lineBytes;
    if (!lineEnds) return;
    this.#line += 1;
    this.#lineBytes = 0;
    if (this.#line >= this.#request.offset + this.#request.limit) this.#closed = true;
  }

  #keep(data: Buffer): void {
    this.#kept.push(Buffer.from(data));
    this.#keptBytes += data.length;
  }

  /** After the page only the lines are counted; a plain loop beats a search per line. */
  #count(data: Buffer): void {
    let newlines = 0;
    for (let index = 0; index < data.length; index += 1) {
      if (data[index] === NEWLINE) newlines += 1;
    }
    this.#line += newlines;
    this.#lineBytes =
      newlines === 0 ? this.#lineBytes + data.length : data.length - 1 - data.lastIndexOf(NEWLINE);
  }

  finish(path: string): TextPage {
    const { offset, byte } = this.#request;
    const totalLines = this.#line + (this.#lineBytes > 0 ? 1 : 0);
    if (totalLines === 0) return renderEmpty(path, this.#request);
    if (offset >= totalLines) throw pastTheEnd(offset, totalLines);
    if (byte > 0 && byte >= this.#firstLineBytes) {
      throw pastTheLine(path, this.#request, this.#firstLineBytes);
    }
    const kept = Buffer.concat(this.#kept, this.#keptBytes);
    const start = characterStart(kept, byte - this.#keepFrom);
    return this.#render(kept, start, totalLines);
  }

  #render(kept: Buffer, start: number, totalLines: number): TextPage {
    const { offset } = this.#request;
    const newline = kept.indexOf(NEWLINE, start);
    const firstLine = kept.subarray(start, newline === -1 ? kept.length : newline);
    const fitting = fitLine(firstLine, `${offset + 1}: `.length + 1);
    if (fitting < firstLine.length) {
      const text = `${offset + 1}: ${firstLine.toString("utf8", 0, fitting)}\n`;
      return { text, totalLines, nextOffset: offset, nextByte: this.#keepFrom + start + fitting };
    }
    const lines: string[] = [];
    let position = start;
    let byteLength = 0;
    while (position < kept.length) {
      const newline = kept.indexOf(NEWLINE, position);
      const end = newline === -1 ? kept.length : newline;
      const prefix = `${offset + lines.length + 1}: `;
      byteLength += prefix.length + (end - position) + 1;
      if (byteLength > MAX_PAGE_BYTES) throw pageTooLarge(lines.length);
      lines.push(`${prefix}${showLine(kept.subarray(position, end))}\n`);
      position = end + 1;
    }
    const fitCount = fitsPage(lines);
    if (fitCount < lines.length) throw pageTooLarge(fitCount);
    const next = offset + lines.length;
    const more = next < totalLines;
    return {
      text: lines.join(""),
      totalLines,
      nextOffset: more ? next : null,
      nextByte: more ? 0 : null,
    };
  }
}

function showLine(line: Buffer): string {
  const end = line[line.length - 1] === CARRIAGE_RETURN ? line.length - 1 : line.length;
  return line.toString("utf8", 0, end);
}

/** How many bytes of a line fit one page, cut between characters. */
function fitLine(line: Buffer, overhead: number): number {
  let length = line.length;
  if (length + overhead > MAX_PAGE_BYTES) {
    length = wholeCharacters(line.subarray(0, MAX_PAGE_BYTES - overhead));
  }
  while (length > 1 && fitsPage([line.toString("utf8", 0, length)]) === 0) {
    length = wholeCharacters(line.subarray(0, length >> 1));
  }
  return length;
}

/** The nearest position at or before `position` where a character begins. */
function characterStart(bytes: Buffer, position: number): number {
  let start = Math.max(0, position);
  while (start > 0 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start -= 1;
  return start;
}
