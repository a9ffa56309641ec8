interface Signature {
  readonly name: string;
  readonly bytes: string;
  readonly at?: number;
}

const SIGNATURES: readonly Signature[] = [
  { name: "PNG image", bytes: "\x89PNG\r\n\x1a\n" },
  { name: "JPEG image", bytes: "\xff\xd8\xff" },
  { name: "GIF image", bytes: "GIF87a" },
  { name: "GIF image", bytes: "GIF89a" },
  { name: "TIFF image", bytes: "II*\0" },
  { name: "TIFF image", bytes: "MM\0*" },
  { name: "PDF document", bytes: "%PDF-" },
  { name: "FLAC audio", bytes: "fLaC" },
  { name: "MP3 audio", bytes: "ID3" },
  { name: "Matroska or WebM video", bytes: "\x1a\x45\xdf\xa3" },
  { name: "Ogg media file", bytes: "OggS" },
  { name: "MP4 or QuickTime media file", bytes: "ftyp", at: 4 },
  { name: "ZIP archive", bytes: "PK\x03\x04" },
  { name: "gzip archive", bytes: "\x1f\x8b\x08" },
  { name: "xz archive", bytes: "\xfd7zXZ\0" },
  { name: "Zstandard archive", bytes: "\x28\xb5\x2f\xfd" },
  { name: "ELF program", bytes: "\x7fELF" },
  { name: "SQLite database", bytes: "SQLite format 3\0" },
  { name: "WebAssembly module", bytes: "\0asm" },
];

const RIFF_KINDS: Readonly<Record<string, string>> = {
  WEBP: "WebP image",
  WAVE: "WAV audio",
  "AVI ": "AVI video",
};

/** Names a media or container file by its first bytes; undefined for everything that may be text. */
export function nameMedia(head: Buffer): string | undefined {
  const text = head.toString("latin1", 0, 16);
  if (text.startsWith("RIFF")) return RIFF_KINDS[text.slice(8, 12)];
  return SIGNATURES.find(({ bytes, at = 0 }) => text.startsWith(bytes, at))?.name;
}
