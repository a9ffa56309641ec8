const MESSAGE_BYTES = 1024;
const TOOL_MESSAGE_BYTES = 4096;

/** The text of an error on the wire: one line of 1 KiB, or with `lines` (tool calls) 4096 bytes with breaks (E-172). */
export function safeMessage(text: string, options: { lines?: boolean } = {}): string {
  const printable = options.lines
    ? text.replace(/(?![\n\t])\p{Cc}/gu, " ")
    : text.replace(/\p{Cc}+/gu, " ");
  const cut = cutText(printable, options.lines ? TOOL_MESSAGE_BYTES : MESSAGE_BYTES);
  return cut === "" ? "no details" : cut;
}

/** The longest prefix of at most `maxBytes` UTF-8 bytes that ends between two characters. */
export function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end);
}
