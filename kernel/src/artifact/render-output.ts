import type { Digest, OutputDeclaration } from "@cookie-agent/sdk/protocol";
import { publicArtifactUri } from "./artifact-uri.ts";
import type { Preview } from "./preview-output.ts";

/** One finished stream: its whole size and what of it is shown. */
export interface MeasuredStream {
  readonly name: string | null;
  readonly byteLength: number;
  readonly lineCount: number;
  readonly preview: Preview;
}

/** What is rendered for a call leaves room for headings and hints below 2 MiB (T-135). */
const RENDERED_BYTES = 2 * 1024 * 1024 - 16 * 1024;

/** The byte limit of one stream's preview: the configured one, or its share of the whole if that is less. */
export function previewBytesPerStream(maxBytes: number, output: OutputDeclaration): number {
  const streams = output.mode === "named" ? output.streams.length : 1;
  return Math.min(maxBytes, Math.floor(RENDERED_BYTES / streams));
}

export function isTruncated(stream: MeasuredStream): boolean {
  return stream.preview.coveredBytes < stream.byteLength;
}

/** What the model reads; `digest` is the artifact of a single output or the manifest of named ones (T-136, T-138). */
export function renderOutput(streams: readonly MeasuredStream[], digest: Digest): string {
  let rendered = "";
  for (const stream of streams) {
    if (stream.name !== null) {
      rendered += `${blankLineAfter(rendered)}[${stream.name}]\n`;
    }
    rendered += stream.preview.text + renderHint(stream, digest);
  }
  return rendered;
}

function renderHint(stream: MeasuredStream, digest: Digest): string {
  if (!isTruncated(stream)) return "";
  const { text, nextOffset, nextByte, coveredBytes } = stream.preview;
  const ownLine = text === "" || text.endsWith("\n") ? "" : "\n";
  const lines = stream.lineCount - nextOffset;
  const bytes = stream.byteLength - coveredBytes;
  const uri = publicArtifactUri(digest, stream.name);
  const position = nextByte > 0 ? `offset=${nextOffset}, byte=${nextByte}` : `offset=${nextOffset}`;
  return `${ownLine}[Truncated: ${lines} lines, ${bytes} bytes omitted. Read more: read(filePath="${uri}", ${position})]`;
}

function blankLineAfter(rendered: string): string {
  if (rendered === "" || rendered.endsWith("\n\n")) return "";
  return rendered.endsWith("\n") ? "\n" : "\n\n";
}
