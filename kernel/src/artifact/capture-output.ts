import {
  CookieError,
  type OutputDeclaration,
  type RetainedOutput,
  type RetainedStream,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { collectYoung } from "../support/collect-young.ts";
import { sha256Hex } from "../support/digest.ts";
import { hasCode } from "../support/has-code.ts";
import { cutUtf8Bytes } from "../support/safe-text.ts";
import { encodeManifest } from "./artifact-manifest.ts";
import type { ArtifactStore, CaptureFile, StoredArtifact } from "./artifact-store.ts";
import { storedArtifactReference } from "./artifact-uri.ts";
import { PreviewBuilder } from "./preview-output.ts";
import {
  isTruncated,
  type MeasuredStream,
  previewBytesPerStream,
  renderOutput,
} from "./render-output.ts";
import { Utf8Stream } from "./utf8-stream.ts";

/** What has passed through in this many bytes is freed before more comes. */
const COLLECT_BYTES = 4 * 1024 * 1024;

/** `[tool_output]`: what of a stream is shown, and how much of a call is kept. */
export interface OutputLimits {
  readonly maxLines: number;
  readonly maxBytes: number;
  readonly maxRetainedBytes: number;
}

/** What the model reads of a call's output, and where all of it is kept. */
export interface CapturedOutput {
  readonly rendered: string;
  readonly retained: RetainedOutput;
}

/** Told of all that is kept, as it is stored; the bytes are good only until it returns. */
export type OnKept = (stream: string | null, parts: readonly Uint8Array[]) => void;

/**
 * The output of one bounded call: written to disk as it comes, previewed in bounded memory, published as artifacts
 * at the end (T 3.1). Calls of `write` must not overlap; its owner ends it with `finish` or `discard`.
 */
export class OutputCapture {
  readonly #store: ArtifactStore;
  readonly #rootId: SessionId;
  readonly #named: boolean;
  readonly #channels: readonly Channel[];
  readonly #maxRetainedBytes: number;
  readonly #onKept: OnKept | undefined;
  #encoded: Buffer = Buffer.alloc(0);
  #acceptedBytes = 0;
  #uncollectedBytes = 0;
  #failure: CookieError | undefined;
  #finished = false;

  constructor(options: {
    store: ArtifactStore;
    rootId: SessionId;
    output: OutputDeclaration;
    limits: OutputLimits;
    onKept?: OnKept;
  }) {
    const { output, limits } = options;
    this.#store = options.store;
    this.#rootId = options.rootId;
    this.#maxRetainedBytes = limits.maxRetainedBytes;
    this.#onKept = options.onKept;
    this.#named = output.mode === "named";
    const names: readonly (string | null)[] = output.mode === "named" ? output.streams : [null];
    const maxBytes = previewBytesPerStream(limits.maxBytes, output);
    this.#channels = names.map((name) => ({
      name,
      file: undefined,
      text: new Utf8Stream(),
      preview: new PreviewBuilder(
        { maxLines: limits.maxLines, maxBytes },
        this.#named ? "terminal" : "exact",
      ),
    }));
  }

  /** Bytes kept so far, over all streams. */
  get acceptedBytes(): number {
    return this.#acceptedBytes;
  }

  /**
   * Accepts text, or bytes that are meant as UTF-8 (E-101). Rejects with `progress_limit` for an undeclared stream,
   * `resource_limit` when the call's cap is reached (what fits is kept, E-104) and `execution_failed` when the disk
   * fails; after one of the last two every further write rejects alike. On a full disk all of it is given up at once:
   * the record needs the space.
   */
  async write(stream: string | null, data: string | readonly Uint8Array[]): Promise<void> {
    if (this.#failure) throw this.#failure;
    const channel = this.#channels.find(({ name }) => name === stream);
    if (channel === undefined) throw undeclaredStream(stream);
    await this.#unlessFailed(async () => {
      const parts =
        typeof data === "string"
          ? [channel.text.end(), this.#encode(data)]
          : data.map((part) => channel.text.write(part));
      await this.#append(channel, parts);
    });
  }

  /**
   * Publishes every stream and, for named ones, their manifest; previews tell the model how to read on. Rejects with
   * the write error when a complete result is asked for after one (the capture then stays open), and with
   * `execution_failed` when nothing could be published or the disk was full (T-132), `operation_changed` when asked
   * a second time (T-038).
   */
  async finish(end: { incomplete: boolean }): Promise<CapturedOutput> {
    if (this.#finished) {
      throw new CookieError("operation_changed", "the output of this call was completed already");
    }
    if (!this.#failure) await this.#endTexts(end);
    if (this.#failure && (!end.incomplete || isDiskFull(this.#failure))) throw this.#failure;
    this.#finished = true;
    try {
      const sealed = this.#channels.map(sealChannel);
      const streams = sealed.map(describeStream);
      const manifest = this.#named ? encodeManifest(streams) : undefined;
      await this.#publish(manifest);
      const digest = manifest ? sha256Hex(manifest) : (sealed[0]?.artifact ?? EMPTY).sha256;
      return {
        rendered: renderOutput(sealed, digest),
        retained: {
          reference: storedArtifactReference(digest),
          streams,
          incomplete: end.incomplete,
        },
      };
    } finally {
      this.discard();
    }
  }

  discard(): void {
    for (const { file } of this.#channels) file?.discard();
  }

  /** The first failure stays: what is kept must be a prefix. */
  async #unlessFailed(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#failure = toCookieError(error);
      if (isDiskFull(this.#failure)) {
        this.discard();
        this.#failure = diskFull(this.#failure);
      }
      throw this.#failure;
    }
  }

  async #append(channel: Channel, parts: readonly Uint8Array[]): Promise<void> {
    const { kept, byteLength, whole } = cutParts(
      parts,
      this.#maxRetainedBytes - this.#acceptedBytes,
    );
    if (byteLength > 0) {
      channel.file ??= await this.#store.beginCapture(
        this.#rootId,
        this.#channels.indexOf(channel),
      );
      await channel.file.append(...kept);
      this.#acceptedBytes += byteLength;
      for (const part of kept) channel.preview.write(part);
      this.#onKept?.(channel.name, kept);
      this.#collect(byteLength);
    }
    if (!whole) throw overCap(this.#maxRetainedBytes);
  }

  #collect(byteLength: number): void {
    this.#uncollectedBytes += byteLength;
    if (this.#uncollectedBytes < COLLECT_BYTES) return;
    this.#uncollectedBytes = 0;
    collectYoung();
  }

  async #endTexts(end: { incomplete: boolean }): Promise<void> {
    const work = async () => {
      for (const channel of this.#channels) await this.#append(channel, [channel.text.end()]);
    };
    await this.#unlessFailed(work).catch((error: unknown) => {
      if (!end.incomplete) throw error;
    });
  }

  /** Into one buffer for all writes: a flood would otherwise leave one of its size behind with every delta. */
  #encode(text: string): Uint8Array {
    if (text.length * 3 > this.#encoded.byteLength) {
      const byteLength = Buffer.byteLength(text, "utf8");
      if (byteLength > this.#encoded.byteLength) this.#encoded = Buffer.allocUnsafeSlow(byteLength);
    }
    return this.#encoded.subarray(0, this.#encoded.write(text, "utf8"));
  }

  async #publish(manifest: Uint8Array | undefined): Promise<void> {
    const work: Promise<unknown>[] = this.#channels.map(
      ({ file }) => file?.publish() ?? this.#store.put(this.#rootId, new Uint8Array(0)),
    );
    if (manifest) work.push(this.#store.put(this.#rootId, manifest));
    // Wait for all: a file must not be discarded while it is being published.
    const failed = (await Promise.allSettled(work)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw toCookieError(failed.reason);
  }
}

interface Channel {
  readonly name: string | null;
  /** Absent until the first text: most calls never write to every stream. */
  file: CaptureFile | undefined;
  readonly text: Utf8Stream;
  readonly preview: PreviewBuilder;
}

interface SealedStream extends MeasuredStream {
  readonly artifact: StoredArtifact;
}

const EMPTY: StoredArtifact = {
  sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  byteLength: 0,
  lineCount: 0,
};

function sealChannel({ name, file, preview }: Channel): SealedStream {
  const artifact = file?.seal() ?? EMPTY;
  const { byteLength, lineCount } = artifact;
  return { name, artifact, byteLength, lineCount, preview: preview.finish() };
}

function describeStream(stream: SealedStream): RetainedStream {
  const { artifact, preview } = stream;
  const truncated = isTruncated(stream);
  return {
    name: stream.name,
    reference: storedArtifactReference(artifact.sha256),
    sha256: artifact.sha256,
    byte_length: artifact.byteLength,
    line_count: artifact.lineCount,
    truncated,
    next_offset: truncated ? preview.nextOffset : null,
    next_byte: truncated ? preview.nextByte : null,
  };
}

/** The longest beginning of at most `maxBytes` that ends with a character. */
function cutParts(parts: readonly Uint8Array[], maxBytes: number) {
  const kept: Uint8Array[] = [];
  let byteLength = 0;
  for (const part of parts) {
    const cut = cutUtf8Bytes(part, maxBytes - byteLength);
    if (cut.byteLength > 0) kept.push(cut);
    byteLength += cut.byteLength;
    if (cut.byteLength < part.byteLength) return { kept, byteLength, whole: false };
  }
  return { kept, byteLength, whole: true };
}

function undeclaredStream(stream: string | null): CookieError {
  return new CookieError(
    "progress_limit",
    stream === null
      ? "the tool declares named streams; every chunk of output must name one"
      : `the tool does not declare the output stream ${stream}`,
  );
}

function isDiskFull({ cause }: CookieError): boolean {
  return hasCode(cause, "ENOSPC", "EDQUOT");
}

function diskFull({ cause }: CookieError): CookieError {
  return new CookieError(
    "execution_failed",
    "the disk that keeps the sessions is full; what the call printed is lost, its effects are not undone",
    { cause },
  );
}

function overCap(maxRetainedBytes: number): CookieError {
  return new CookieError(
    "resource_limit",
    `the call printed more than ${maxRetainedBytes} bytes, all that is kept of one call; print less or write to a file`,
  );
}

function toCookieError(error: unknown): CookieError {
  if (error instanceof CookieError) return error;
  return new CookieError("execution_failed", "output could not be stored", { cause: error });
}
