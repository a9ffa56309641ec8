import { ArtifactsRead, ArtifactsWrite, HostLog } from "../protocol/host-methods.ts";
import type { ParamsInput, ParamsOf, ResultOf } from "../protocol/method.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { cutText } from "../rpc/safe-message.ts";
import { openServices } from "./open-services.ts";
import type { ServiceClient } from "./service-client.ts";

export type LogLevel = ParamsOf<typeof HostLog>["level"];

/** One page of an artifact's text. */
export type ArtifactPage = ResultOf<typeof ArtifactsRead> & { readonly text: string };

/** Kernel services for one prepare or call; each needs its grant (E-118). */
export interface HostClient extends ServiceClient {
  /**
   * Reads one page of an artifact: zero-based first line `offset`, `byte` inside it, at most `limit` lines. Needs
   * `artifacts.read`; rejects with `permission_denied` for an artifact that this request may not read, `artifact_uri`,
   * `artifact_missing`, `artifact_corrupt`.
   */
  readArtifact(
    page: Pick<ParamsInput<typeof ArtifactsRead>, "uri" | "offset" | "byte" | "limit">,
  ): Promise<ArtifactPage>;
  /** Stores text, or base64 `data`, of at most 1 MiB as an artifact of the session. Needs `artifacts.write`. */
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
  scratch: string,
): HostClient {
  const options = { signal, timeoutMs: REQUEST_TIMEOUT_MS };
  return {
    ...openServices(connection, contextId, signal, scratch),
    readArtifact: async (page) => {
      const answer = await connection.request(
        ArtifactsRead,
        { ...page, context_id: contextId },
        options,
      );
      return { ...answer, text: answer.text ?? "" };
    },
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
