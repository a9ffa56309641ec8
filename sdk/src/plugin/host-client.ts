import { ArtifactsRead, ArtifactsWrite, HostLog } from "../protocol/host-methods.ts";
import type { ParamsInput, ParamsOf, ResultOf } from "../protocol/method.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { cutText } from "../rpc/safe-message.ts";

export type LogLevel = ParamsOf<typeof HostLog>["level"];

/** Kernel services for one prepare or call; each needs its grant (E-118). */
export interface HostClient {
  /** Reads one page of an artifact: zero-based first line `offset`, `byte` inside it, at most `limit` lines. */
  readArtifact(
    page: Omit<ParamsInput<typeof ArtifactsRead>, "context_id">,
  ): Promise<ResultOf<typeof ArtifactsRead>>;
  /** Stores text, or base64 `data`, of at most 1 MiB as an artifact of the session. */
  writeArtifact(
    content: { readonly text: string } | { readonly data: string },
  ): Promise<ResultOf<typeof ArtifactsWrite>>;
  /** Writes to the kernel's log; at most 4 KiB of the message are kept. */
  log(level: LogLevel, message: string, fields?: JsonObject): void;
}

const REQUEST_TIMEOUT_MS = 30_000;
const LOG_MESSAGE_BYTES = 4096;

export function createHostClient(
  connection: Connection,
  contextId: string,
  signal: AbortSignal,
): HostClient {
  const options = { signal, timeoutMs: REQUEST_TIMEOUT_MS };
  return {
    readArtifact: (page) =>
      connection.request(ArtifactsRead, { ...page, context_id: contextId }, options),
    writeArtifact: (content) =>
      connection.request(ArtifactsWrite, { ...content, context_id: contextId }, options),
    log: (level, message, fields) => writeLog(connection, level, message, fields),
  };
}

/** Fire and forget: a log line that cannot be sent must not fail a call. */
export function writeLog(
  connection: Connection,
  level: LogLevel,
  message: string,
  fields?: JsonObject,
): void {
  connection
    .notify(HostLog, {
      level,
      message: cutText(message, LOG_MESSAGE_BYTES),
      ...(fields === undefined ? {} : { fields }),
    })
    .catch(() => {});
}
