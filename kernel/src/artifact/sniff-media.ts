import type { MediaKind } from "@cookie-agent/sdk/protocol";

/** What some content is, for a model. */
export interface MediaType {
  readonly kind: MediaKind;
  readonly mime: string;
}

/** The signatures of every type but one stand in the first bytes; that one may need this many. */
export const SNIFF_BYTES = 4096;

const MP4_BRANDS = /^(?:isom|iso[2-9]|mp41|mp42|avc1|dash|M4V )$/;
const ASF_GUID = "3026b2758e66cf11a6d900aa0062ce6c";

/** Another name of the same thing, as people and programs declare it. */
const ALIASES: Readonly<Record<string, string>> = {
  "image/jpg": "image/jpeg",
  "audio/mp3": "audio/mpeg",
  "audio/x-wav": "audio/wav",
  "audio/wave": "audio/wav",
  "audio/x-flac": "audio/flac",
  "video/mov": "video/quicktime",
  "video/avi": "video/x-msvideo",
  "video/vnd.avi": "video/x-msvideo",
  "video/msvideo": "video/x-msvideo",
  "video/mpg": "video/mpeg",
  "video/matroska": "video/x-matroska",
  "video/x-ms-wmv": "video/wmv",
  "video/x-ms-asf": "video/wmv",
};

/**
 * Tells media by its first bytes (T-151); undefined for anything else. `name` only tells two names of one container
 * apart.
 *
 * @param head The first `SNIFF_BYTES`, or all of it.
 */
export function sniffMedia(
  head: Uint8Array,
  byteLength: number,
  name: string | null = null,
): MediaType | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const text = bytes.toString("latin1", 0, 16);
  const mime = imageOrPdf(text) ?? audio(text, bytes) ?? video(text, bytes, byteLength, name);
  return mime === undefined ? undefined : { mime, kind: kindOf(mime) };
}

/** The usual name of a declared type: lower case, without parameters. */
export function normalizeMime(mime: string): string {
  const bare = (mime.split(";")[0] ?? "").trim().toLowerCase();
  return Object.hasOwn(ALIASES, bare) ? (ALIASES[bare] ?? bare) : bare;
}

/** Whether what somebody said of the content agrees with it; WebM is a Matroska too. */
export function isDeclaredAs(found: MediaType, declared: string): boolean {
  const mime = normalizeMime(declared);
  const isMatroska = (one: string) => one === "video/webm" || one === "video/x-matroska";
  return mime === found.mime || (isMatroska(mime) && isMatroska(found.mime));
}

function imageOrPdf(text: string): string | undefined {
  if (text.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (text.startsWith("\xff\xd8")) return "image/jpeg";
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  if (isRiff(text, "WEBP")) return "image/webp";
  return text.startsWith("%PDF-") ? "application/pdf" : undefined;
}

function audio(text: string, bytes: Buffer): string | undefined {
  if (text.startsWith("ID3") || isMpegFrame(bytes)) return "audio/mpeg";
  if (isRiff(text, "WAVE")) return "audio/wav";
  if (text.startsWith("OggS")) return "audio/ogg";
  return text.startsWith("fLaC") ? "audio/flac" : undefined;
}

/** Of layer II or III: in layer I a frame may begin as UTF-16 text does. */
function isMpegFrame(bytes: Buffer): boolean {
  const [first, second = 0] = bytes;
  const layer = second & 0x06;
  return first === 0xff && (second & 0xe0) === 0xe0 && (layer === 0x02 || layer === 0x04);
}

function video(
  text: string,
  bytes: Buffer,
  byteLength: number,
  name: string | null,
): string | undefined {
  if (text.slice(4, 8) === "ftyp") return isoVideo(bytes, byteLength);
  if (text.startsWith("\x1a\x45\xdf\xa3")) {
    return name?.toLowerCase().endsWith(".mkv") ? "video/x-matroska" : "video/webm";
  }
  if (isRiff(text, "AVI ")) return "video/x-msvideo";
  if (text.startsWith("FLV\x01")) return "video/x-flv";
  if (text.startsWith("\0\0\x01\xba") || text.startsWith("\0\0\x01\xb3")) return "video/mpeg";
  return bytes.toString("hex", 0, 16) === ASF_GUID ? "video/wmv" : undefined;
}

function isoVideo(bytes: Buffer, byteLength: number): string | undefined {
  if (bytes.byteLength < 16) return undefined;
  const shortSize = bytes.readUInt32BE(0);
  const isLong = shortSize === 1;
  if (isLong && bytes.byteLength < 24) return undefined;
  const size = isLong ? Number(bytes.readBigUInt64BE(8)) : shortSize;
  const start = isLong ? 16 : 8;
  if (size < start + 8 || size > byteLength) return undefined;
  const brandAt = (at: number) => bytes.toString("latin1", at, at + 4);
  const major = brandedVideo(brandAt(start));
  if (major !== undefined) return major;
  const end = Math.min(size, bytes.byteLength, SNIFF_BYTES);
  for (let at = start + 8; at + 4 <= end; at += 4) {
    const compatible = brandedVideo(brandAt(at));
    if (compatible !== undefined) return compatible;
  }
  return undefined;
}

function brandedVideo(brand: string): string | undefined {
  if (brand === "qt  ") return "video/quicktime";
  if (brand.startsWith("3g")) return "video/3gpp";
  return MP4_BRANDS.test(brand) ? "video/mp4" : undefined;
}

function isRiff(text: string, form: string): boolean {
  return text.startsWith("RIFF") && text.slice(8, 12) === form;
}

/** The kind of one of the types above. */
export function kindOf(mime: string): MediaKind {
  if (mime === "application/pdf") return "pdf";
  if (mime.startsWith("image/")) return "image";
  return mime.startsWith("audio/") ? "audio" : "video";
}
