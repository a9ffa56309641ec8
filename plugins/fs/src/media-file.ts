import { basename } from "node:path";
import { nameMedia } from "./name-media.ts";

/** How much of a file tells what it is (T 4.1). */
export const HEAD_BYTES = 4096;

const MATROSKA = ["video/x-matroska", "video/webm"];

/** Names that promise media, with what their content may be. */
const EXTENSIONS: Readonly<Record<string, readonly string[]>> = {
  png: ["image/png"],
  jpg: ["image/jpeg"],
  jpeg: ["image/jpeg"],
  gif: ["image/gif"],
  webp: ["image/webp"],
  pdf: ["application/pdf"],
  mp3: ["audio/mpeg"],
  wav: ["audio/wav"],
  ogg: ["audio/ogg"],
  flac: ["audio/flac"],
  mp4: ["video/mp4"],
  mov: ["video/quicktime"],
  mkv: MATROSKA,
  webm: MATROSKA,
  avi: ["video/x-msvideo"],
  flv: ["video/x-flv"],
  mpg: ["video/mpeg"],
  mpeg: ["video/mpeg"],
  wmv: ["video/wmv"],
  "3gp": ["video/3gpp"],
};

/** Signatures beside those that have a name of their own. */
const BEGINNINGS = ["FLV\x01", "\0\0\x01\xba", "\0\0\x01\xb3", "\x30\x26\xb2\x75"];

/** What content the file's name promises; undefined when it promises no media. */
export function promisedTypes(path: string): readonly string[] | undefined {
  const name = basename(path).toLowerCase();
  const extension = name.slice(name.lastIndexOf(".") + 1);
  return name.includes(".") && Object.hasOwn(EXTENSIONS, extension)
    ? EXTENSIONS[extension]
    : undefined;
}

/** Whether it is worth asking what a file without such a name is; only the kernel's answer counts. */
export function mayBeMedia(head: Buffer): boolean {
  const text = head.toString("latin1", 0, 4);
  const isFrame = head[0] === 0xff && ((head[1] ?? 0) & 0xe0) === 0xe0;
  return isFrame || BEGINNINGS.includes(text) || nameMedia(head) !== undefined;
}
