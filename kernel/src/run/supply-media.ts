import type { Digest, MediaKind, ToolAttachment } from "@cookie-agent/sdk/protocol";
import { takesMedia } from "../artifact/gate-media.ts";
import { kindOf } from "../artifact/sniff-media.ts";
import type { MediaTarget } from "../config/media-target.ts";
import type { HistoryMessage, SuppliedMedia, SuppliedPart } from "../model/bound-model.ts";

/** All media of a request together; more would not fit into one string once encoded. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

/** The bytes of an artifact, checked for digest and length; undefined when they cannot be had as they were. */
export type LoadMedia = (sha256: Digest, byteLength: number) => Promise<Buffer | undefined>;

/**
 * Chooses and loads the media of one request. What the model cannot take, the oldest parts beyond its counts, and what
 * is lost become notes (T-158); the history stays as it is.
 */
export async function supplyMedia(
  history: readonly HistoryMessage[],
  target: MediaTarget,
  load: LoadMedia,
): Promise<SuppliedMedia> {
  const supplied = new Map<ToolAttachment, SuppliedPart>();
  const counts = new Map<MediaKind, number>();
  let totalBytes = 0;
  for (const part of mediaOf(history).reverse()) {
    const kind = kindOf(part.mime_type);
    const { byte_length: byteLength, mime_type: mime } = part;
    const placement = takesMedia(target, { kind, mime, byteLength });
    if (placement === undefined) {
      supplied.set(part, note(part, `the model ${target.model} does not take it`));
      continue;
    }
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    totalBytes += byteLength;
    if (count > (target.kinds.get(kind)?.maxCount ?? 0) || totalBytes > MAX_REQUEST_BYTES) {
      supplied.set(part, note(part, "newer ones took its place"));
      continue;
    }
    const bytes = await load(part.sha256, byteLength);
    supplied.set(
      part,
      bytes === undefined
        ? note(part, "its content is lost")
        : { kind: "media", placement, data: bytes.toString("base64") },
    );
  }
  return supplied;
}

/** Oldest first. */
function mediaOf(history: readonly HistoryMessage[]): ToolAttachment[] {
  return history.flatMap((message) =>
    message.role !== "tool"
      ? []
      : message.results.flatMap(({ attachments = [], additional = [] }) => [
          ...attachments,
          ...additional.flatMap(({ content }) => content.filter((part) => part.type === "file")),
        ]),
  );
}

function note({ filename, mime_type: mime }: ToolAttachment, why: string): SuppliedPart {
  const name = filename === null ? mime : `${filename} (${mime})`;
  return { kind: "note", text: `[attachment ${name} left out: ${why}]` };
}
