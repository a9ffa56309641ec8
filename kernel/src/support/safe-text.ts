/** The longest prefix of at most `maxBytes` UTF-8 bytes that does not split a character. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, "utf8");
  const cut = cutUtf8Bytes(bytes, maxBytes);
  return cut === bytes ? text : bytes.toString("utf8", 0, cut.byteLength);
}

/** The same of text that is encoded already. */
export function cutUtf8Bytes(bytes: Uint8Array, maxBytes: number): Uint8Array {
  if (bytes.byteLength <= maxBytes) return bytes;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}

/** Controls, and what no screen shows or what reorders a line; the joiners and selectors of an emoji stay. */
const UNSHOWN =
  /(?!(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F)\u200D\p{Extended_Pictographic})(?!(?<=\p{Emoji})(?:\uFE0E|\uFE0F))[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** Everything that a person would not see, or would see elsewhere, becomes a space. */
export function shown(text: string): string {
  return text.replace(UNSHOWN, " ");
}

/** One line for people, cut at a character, never empty (S-010). */
export function safeText(text: string, maxBytes: number): string {
  const cut = cutUtf8(shown(text), maxBytes).trim();
  return cut === "" ? "unavailable" : cut;
}

/** Several lines for people to decide on or to read: only newline and tab survive of what is not shown (T-036). */
export function shownLines(text: string, maxBytes: number): string {
  const unshown = (character: string) => (/[\n\t]/.test(character) ? character : " ");
  return cutUtf8(text.replace(UNSHOWN, unshown), maxBytes);
}

/** Several lines for a model, too: newline and tab survive, every other control becomes a space. */
export function safeLines(text: string, maxBytes: number): string {
  return cutUtf8(text.replace(/(?![\n\t])\p{Cc}/gu, " "), maxBytes);
}
