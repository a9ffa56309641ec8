/** The longest prefix of at most `maxBytes` UTF-8 bytes that does not split a character. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}

/** One line for people: controls become spaces, cut at a character, never empty (S-010). */
export function safeText(text: string, maxBytes: number): string {
  const cut = cutUtf8(text.replace(/\p{Cc}/gu, " "), maxBytes).trim();
  return cut === "" ? "unavailable" : cut;
}

/** Several lines for people: newline and tab survive, every other control becomes a space (T-036). */
export function safeLines(text: string, maxBytes: number): string {
  return cutUtf8(text.replace(/(?![\n\t])\p{Cc}/gu, " "), maxBytes);
}
