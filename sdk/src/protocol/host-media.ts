import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { boundedText, ContextId, Count, controlFreeText } from "./scalars.ts";
import { isOneOf, ScratchName } from "./scratch-file.ts";

/** What media a model may take in beside text (T 4). */
export const MediaKind = z.enum(["image", "pdf", "audio", "video"]);
export type MediaKind = z.infer<typeof MediaKind>;

/** Where a model gets the media of a tool result: inside it, or in one user message right after it (T 4.5). */
export const MediaPlacement = z.enum(["tool_result", "user_turn"]);
export type MediaPlacement = z.infer<typeof MediaPlacement>;

/** Tells what the content is, by its first bytes and never by a name (T 4.1). */
export const MediaSniff = request(
  "host/media/sniff",
  () =>
    fromPlugin({
      context_id: ContextId,
      /** An `artifact://` URI. */
      artifact: boundedText(1, 1024).optional(),
      scratch: ScratchName.optional(),
      /** Base64 of at most 64 KiB. */
      data: z.string().optional(),
    }).refine(({ artifact, scratch, data }) => isOneOf(artifact, scratch, data), {
      error: "expected exactly one of artifact, scratch, data",
    }),
  () =>
    toPlugin({
      /** Null: nothing that a model takes as media. */
      mime: z.string().nullable(),
      kind: MediaKind.optional(),
    }),
);

/**
 * Stores media and tells whether the selected model would get it as an attachment of this call, and where. Rejects
 * with the `media_*` error that the attachment would fail with (E-111).
 */
export const MediaDeliver = request(
  "host/media/deliver",
  () =>
    fromPlugin({
      context_id: ContextId,
      /** An `artifact://` URI. */
      artifact: boundedText(1, 1024).optional(),
      scratch: ScratchName.optional(),
      /** Shown with the result. */
      filename: controlFreeText(1, 512).optional(),
    }).refine(({ artifact, scratch }) => isOneOf(artifact, scratch), {
      error: "expected exactly one of artifact, scratch",
    }),
  () =>
    toPlugin({
      /** What to attach. */
      artifact: z.string(),
      /** By its content. */
      mime: z.string(),
      /** Its length. */
      bytes: Count,
      placement: MediaPlacement,
    }),
);
