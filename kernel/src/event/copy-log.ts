import type { SessionId } from "@cookie-agent/sdk/protocol";
import { parseObject } from "./parse-record.ts";
import { RecordSplitter } from "./split-records.ts";

export interface LogCopy {
  readonly sessionId: SessionId;
  /** The handle that the new session has in place of the other one's; null where that had none. */
  readonly shortId: string | null;
  readonly throughSeq: number;
}

/**
 * The records of a log up to an event as another session's log holds them: markers, and whatever this version does
 * not know, stay as they are (S-230). What is no record with a number of its own is left out.
 */
export async function* copyLog(
  chunks: AsyncIterable<Uint8Array>,
  copy: LogCopy,
): AsyncGenerator<Buffer> {
  const splitter = new RecordSplitter(0);
  let lastSeq = 0;
  for await (const chunk of chunks) {
    const lines: string[] = [];
    for (const { source, from, to } of splitter.push(chunk)) {
      const record = parseObject(source.toString("utf8", from, to).replaceAll("\0", ""));
      const seq = record?.seq;
      if (record === undefined || typeof seq !== "number" || !Number.isSafeInteger(seq)) continue;
      if (seq <= lastSeq || seq > copy.throughSeq) continue;
      lastSeq = seq;
      lines.push(`${JSON.stringify(rebind(record, copy))}\n`);
    }
    if (lines.length > 0) yield Buffer.from(lines.join(""));
    if (lastSeq === copy.throughSeq) return;
  }
}

function rebind(record: Record<string, unknown>, { sessionId, shortId }: LogCopy): object {
  const isFirst = record["seq"] === 1;
  const isBound = isFirst || record["session_id"] !== undefined;
  const bound = { ...record, ...(isBound && { session_id: sessionId }) };
  const { payload } = record;
  if (!isFirst || typeof payload !== "object" || payload === null) return bound;
  return { ...bound, payload: { ...payload, ...(shortId !== null && { short_id: shortId }) } };
}
