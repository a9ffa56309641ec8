import { CookieError, type MediaKind, type MediaPlacement } from "@cookie-agent/sdk/protocol";
import type { MediaTarget } from "../config/media-target.ts";
import { type MediaType, normalizeMime } from "./sniff-media.ts";

/** Where the model gets the part; throws the error of the first gate that it does not pass (T-156, T-157). */
export function gateMedia(
  target: MediaTarget,
  part: MediaType & { readonly byteLength: number },
): MediaPlacement {
  const { kind, mime, byteLength } = part;
  const room = target.kinds.get(kind);
  if (room === undefined) {
    throw refuse("media_model", target, `the model ${target.model} takes no ${kind} input`);
  }
  if (!room.mimeTypes.some((one) => normalizeMime(one) === mime)) {
    throw refuse("media_model", target, `the model ${target.model} takes no ${mime}`);
  }
  checkSize(target, byteLength, room.maxBytes, `the model ${target.model} takes ${kind} input`);
  if (room.delivery === null) {
    const problem = `the provider family ${target.family} cannot deliver ${kind} input`;
    throw refuse("media_family", target, problem);
  }
  const family = `the provider family ${target.family} delivers ${kind} input`;
  checkSize(target, byteLength, room.delivery.maxBytes, family);
  return room.delivery.placement;
}

/** Throws `media_count` when one result holds more of a kind than the model takes in a whole request (T-158). */
export function gateCounts(target: MediaTarget, kinds: readonly MediaKind[]): void {
  for (const [kind, { maxCount }] of target.kinds) {
    const count = kinds.filter((one) => one === kind).length;
    if (count <= maxCount) continue;
    const problem = `the model ${target.model} takes ${maxCount} ${kind} parts in one request; attach no more`;
    throw refuse("media_count", target, problem);
  }
}

/** Whether the part would pass, for a request that must be made in any case. */
export function takesMedia(
  target: MediaTarget,
  part: MediaType & { readonly byteLength: number },
): MediaPlacement | undefined {
  try {
    return gateMedia(target, part);
  } catch {
    return undefined;
  }
}

function checkSize(target: MediaTarget, byteLength: number, maxBytes: number, who: string): void {
  if (byteLength <= maxBytes) return;
  const problem = `${who} of at most ${inMebibytes(maxBytes)} MiB; this has ${byteLength} bytes`;
  throw refuse("media_size", target, problem);
}

/** Rounded down, so that what is named fits. */
export function inMebibytes(bytes: number): string {
  return String(Math.floor((bytes / 1024 / 1024) * 100) / 100);
}

function refuse(
  code: "media_model" | "media_family" | "media_size" | "media_count",
  { model, family }: MediaTarget,
  problem: string,
): CookieError {
  return new CookieError(code, problem, { data: { model, family } });
}
