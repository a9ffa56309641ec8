import { checkGif } from "./check-gif.ts";
import { checkJpeg } from "./check-jpeg.ts";
import { checkPng } from "./check-png.ts";
import { checkWebp } from "./check-webp.ts";
import type { ImageSize } from "./image-size.ts";

export const MAX_SIDE_PIXELS = 16_384;
export const MAX_AREA_PIXELS = 16_777_216;

const CHECKS: Readonly<Record<string, (bytes: Buffer) => ImageSize | string>> = {
  "image/png": checkPng,
  "image/jpeg": checkJpeg,
  "image/gif": checkGif,
  "image/webp": checkWebp,
};

/** What is wrong with an image whose signature is right; undefined when it is whole and not too large (T-152, T-153). */
export function checkImage(bytes: Buffer, mime: string): string | undefined {
  const size = CHECKS[mime]?.(bytes);
  if (size === undefined || typeof size === "string") return size ?? "its form is not known";
  const { width, height, frames = 1 } = size;
  if (width < 1 || height < 1) return "it has no size";
  if (width > MAX_SIDE_PIXELS || height > MAX_SIDE_PIXELS) {
    return `it is ${width} x ${height} pixels; a side may have ${MAX_SIDE_PIXELS}`;
  }
  if (width * height * frames <= MAX_AREA_PIXELS) return undefined;
  return `it has more than ${MAX_AREA_PIXELS} pixels in all`;
}
