const TAIL_BYTES = 1024;
/** Of a trailer or the head of a cross-reference stream. */
const DICTIONARY_BYTES = 64 * 1024;

/** A readable PDF says where its cross-references are; nobody can read an encrypted one. Undefined: fine (T-154). */
export function checkPdf(bytes: Buffer): string | undefined {
  if (!/^%PDF-[12]\.\d/.test(bytes.toString("latin1", 0, 8)))
    return "its version is not 1.x or 2.x";
  const end = bytes.lastIndexOf("%%EOF");
  if (end === -1 || end < bytes.byteLength - TAIL_BYTES) return "it ends early";
  const tail = bytes.toString("latin1", Math.max(0, end - TAIL_BYTES), end);
  const start = /startxref\s+(\d{1,15})\s*$/.exec(tail)?.[1];
  if (start === undefined) return "it does not say where its cross-references are";
  const at = Number(start);
  const trailer = at < end ? findTrailer(bytes, at) : undefined;
  if (trailer === undefined) return "its cross-references are not where it says";
  return /\/Encrypt(?![A-Za-z0-9])/.test(decodeNames(trailer)) ? "it is encrypted" : undefined;
}

/** The dictionary of a classic table's trailer or of a cross-reference stream. */
function findTrailer(bytes: Buffer, start: number): string | undefined {
  const head = bytes.toString("latin1", start, start + DICTIONARY_BYTES);
  if (/^\s*\d+\s+\d+\s+obj\b/.test(head)) {
    const dictionary = head.slice(0, beginOf(head, "stream"));
    return /\/XRef\b/.test(decodeNames(dictionary)) ? dictionary : undefined;
  }
  if (!/^\s*xref\b/.test(head)) return undefined;
  const trailer = bytes.indexOf("trailer", start);
  if (trailer === -1) return undefined;
  const text = bytes.toString("latin1", trailer, trailer + DICTIONARY_BYTES);
  return text.slice(0, beginOf(text, "startxref"));
}

function beginOf(text: string, word: string): number {
  const at = text.indexOf(word);
  return at === -1 ? text.length : at;
}

/** A name may spell any of its characters as a number. */
function decodeNames(text: string): string {
  return text.replace(/#([0-9a-fA-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}
