import type { SessionId, ToolCallId } from "@cookie-agent/sdk/protocol";
import type { OutputNotice } from "./output-notice.ts";
import { OutputSubscription } from "./output-subscription.ts";
import { OutputTail } from "./output-tail.ts";

/** Name of the one stream of a tool without named ones (D-070). */
const UNNAMED_STREAM = "output";

/** The output of one call on its way to whoever watches. */
export interface OutputFeed {
  /** Takes parts of UTF-8 that may change once this has returned. */
  write(stream: string | null, parts: readonly Uint8Array[]): void;
  /** Ends the call's output: what is kept of it from now on are the captures. */
  end(): void;
}

interface LiveCall {
  readonly toolCallId: ToolCallId;
  readonly sessionId: SessionId;
  readonly streams: ReadonlyMap<string, OutputTail>;
}

/**
 * Live output of running calls, by byte offset (S-064). Presentation only: it keeps the last 64 KiB of a stream and
 * never slows a call; captures keep everything.
 */
export class OutputHub {
  /** Running calls, in order of beginning. */
  readonly #calls = new Map<ToolCallId, LiveCall>();
  readonly #subscriptions = new Map<SessionId, Set<OutputSubscription>>();

  begin(call: {
    sessionId: SessionId;
    toolCallId: ToolCallId;
    streams: readonly string[];
  }): OutputFeed {
    const names = call.streams.length === 0 ? [UNNAMED_STREAM] : call.streams;
    const live: LiveCall = {
      toolCallId: call.toolCallId,
      sessionId: call.sessionId,
      streams: new Map(names.map((name) => [name, new OutputTail()])),
    };
    this.#calls.set(call.toolCallId, live);
    for (const notice of snapshotCall(live)) this.#publish(live, notice);
    return {
      write: (stream, parts) => {
        for (const part of parts) this.#write(live, stream ?? UNNAMED_STREAM, part);
      },
      end: () => void this.#calls.delete(live.toolCallId),
    };
  }

  /** Running calls of a session and their streams (D-065). */
  active(sessionId: SessionId): { toolCallId: ToolCallId; streams: string[] }[] {
    return [...this.#calls.values()]
      .filter((call) => call.sessionId === sessionId)
      .map((call) => ({ toolCallId: call.toolCallId, streams: [...call.streams.keys()] }));
  }

  /** Snapshots of the session's running calls and everything after, without loss between (D-072). */
  subscribe(sessionId: SessionId): OutputSubscription {
    const peers = this.#subscriptions.get(sessionId) ?? new Set();
    this.#subscriptions.set(sessionId, peers);
    const subscription = new OutputSubscription(() => {
      peers.delete(subscription);
      if (peers.size === 0) this.#subscriptions.delete(sessionId);
    });
    peers.add(subscription);
    for (const call of this.#calls.values()) {
      if (call.sessionId !== sessionId) continue;
      for (const notice of snapshotCall(call)) subscription.push(notice);
    }
    return subscription;
  }

  #write(call: LiveCall, stream: string, bytes: Uint8Array): void {
    const tail = call.streams.get(stream);
    const { toolCallId } = call;
    if (tail === undefined || bytes.byteLength === 0 || !this.#calls.has(toolCallId)) return;
    const byteOffset = tail.endOffset;
    tail.write(bytes);
    if (!this.#subscriptions.has(call.sessionId)) return;
    const data = Uint8Array.from(bytes);
    this.#publish(call, { kind: "delta", toolCallId, stream, byteOffset, data });
  }

  #publish(call: LiveCall, notice: OutputNotice): void {
    for (const subscription of this.#subscriptions.get(call.sessionId) ?? []) {
      subscription.push(notice);
    }
  }
}

function snapshotCall({ toolCallId, streams }: LiveCall): OutputNotice[] {
  return [...streams].flatMap(([stream, tail]) => {
    const { startOffset, endOffset } = tail;
    const notices: OutputNotice[] = [];
    if (startOffset > 0) notices.push({ kind: "gap", toolCallId, stream, nextOffset: startOffset });
    const chunks = tail.chunks();
    notices.push({ kind: "snapshot", toolCallId, stream, startOffset, endOffset, chunks });
    return notices;
  });
}
