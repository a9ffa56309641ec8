import { PassThrough } from "node:stream";
import { type BadLine, createLineTransport, type LineTransport } from "@cookie-agent/sdk/rpc";

/** A line transport whose other end is the test: bytes in, lines out. */
export interface RawPeer {
  readonly transport: LineTransport;
  readonly input: PassThrough;
  readonly output: PassThrough;
  readonly badLines: BadLine[];
  /** All bytes that the transport wrote. */
  written(): Buffer;
  send(...frames: object[]): void;
  /** The next frame that the transport wrote. */
  next(): Promise<Record<string, unknown>>;
}

export function openRawPeer(options: { maxFrameBytes?: number; raw?: boolean } = {}): RawPeer {
  const input = new PassThrough();
  const output = new PassThrough();
  const badLines: BadLine[] = [];
  const chunks: Buffer[] = [];
  output.on("data", (chunk: Buffer) => chunks.push(chunk));
  const transport = createLineTransport({
    input,
    output,
    onBadLine: (bad) => badLines.push({ ...bad }),
    ...options,
  });
  return {
    transport,
    input,
    output,
    badLines,
    written: () => Buffer.concat(chunks),
    send: (...frames) => {
      input.write(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
    },
    next: lineReader(output),
  };
}

export function lineReader(output: NodeJS.ReadableStream): () => Promise<Record<string, unknown>> {
  const lines: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  let rest = "";
  output.on("data", (chunk: Buffer) => {
    const parts = (rest + chunk.toString("utf8")).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      const take = waiting.shift();
      if (take) take(line);
      else lines.push(line);
    }
  });
  return async () => {
    const line = lines.shift() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
    return JSON.parse(line) as Record<string, unknown>;
  };
}
