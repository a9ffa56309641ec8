import type { MediaKind, MediaPlacement } from "@cookie-agent/sdk/protocol";

/** What the selected model takes beside text, and how its provider family would carry it (T 4.3, 4.4). */
export interface MediaTarget {
  readonly model: string;
  readonly family: string;
  /** Exactly the kinds that the model declares. */
  readonly kinds: ReadonlyMap<MediaKind, MediaRoom>;
}

export interface MediaRoom {
  readonly mimeTypes: readonly string[];
  /** Raw bytes of one part. */
  readonly maxBytes: number;
  /** Parts of one request. */
  readonly maxCount: number;
  /** Null: the family has no way to carry it. */
  readonly delivery: { readonly placement: MediaPlacement; readonly maxBytes: number } | null;
}

/** A model of words alone. */
export function textOnly(model: string, family: string): MediaTarget {
  return { model, family, kinds: new Map() };
}
