import type { Digest, MediaKind, ToolAttachment } from "@cookie-agent/sdk/protocol";
import { takesMedia } from "../artifact/gate-media.ts";
import { kindOf } from "../artifact/sniff-media.ts";
import type { MediaTarget } from "../config/media-target.ts";
import type { HistoryMessage, SuppliedMedia, SuppliedPart } from "../model/bound-model.ts";
import { hasMedia, mediaPartsOf } from "../model/place-media.ts";

/** All media of a request together; encoded, more would be refused by every provider. */
const MAX_REQUEST_BYTES = 32 * 1024 * 1024;

/** The bytes of an artifact, checked for digest and length; undefined when they cannot be had as they were. */
export type LoadMedia = (sha256: Digest, byteLength: number) => Promise<Buffer | undefined>;

/**
 * Chooses and loads the media of one request. What the model cannot take, the oldest parts beyond its counts, and what
 * is lost become notes (T-158); the history stays as it is.
 *
 * @param refused What the model's provider did not take.
 * @param before Of the request before; what is the same again is the same object, and is not loaded anew.
 */
export async function supplyMedia(
  history: readonly HistoryMessage[],
  target: MediaTarget,
  load: LoadMedia,
  before: SuppliedMedia,
  refused: ReadonlySet<ToolAttachment>,
): Promise<SuppliedMedia> {
  const supplied = new Map<ToolAttachment, SuppliedPart>();
  const counts = new Map<MediaKind, number>();
  let totalBytes = 0;
  for (const part of history.filter(hasMedia).flatMap(mediaPartsOf).reverse()) {
    const kind = kindOf(part.mime_type);
    const { byte_length: byteLength, mime_type: mime } = part;
    const known = before.get(part);
    const setNote = (why: string) => supplied.set(part, noteOf(part, why, known));
    if (refused.has(part)) {
      setNote("the provider refused a request that contained it");
      continue;
    }
    const placement = takesMedia(target, { kind, mime, byteLength });
    if (placement === undefined) {
      setNote(`the model ${target.model} does not take it`);
      continue;
    }
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    totalBytes += byteLength;
    if (count > (target.kinds.get(kind)?.maxCount ?? 0) || totalBytes > MAX_REQUEST_BYTES) {
      setNote("newer ones took its place");
      continue;
    }
    if (known?.kind === "media" && known.placement === placement) {
      supplied.set(part, known);
      continue;
    }
    const bytes = await load(part.sha256, byteLength);
    if (bytes === undefined) setNote("its content is lost");
    else supplied.set(part, { kind: "media", placement, data: bytes.toString("base64") });
  }
  return supplied;
}

function noteOf(
  { filename, mime_type: mime }: ToolAttachment,
  why: string,
  known: SuppliedPart | undefined,
): SuppliedPart {
  const name = filename === null ? mime : `${filename} (${mime})`;
  const text = `[attachment ${name} left out: ${why}]`;
  return known?.kind === "note" && known.text === text ? known : { kind: "note", text };
}
