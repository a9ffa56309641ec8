/** The text, or as much of it as fits `maxBytes` with an ellipsis, cut between characters. */
export function cutText(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  let end = 0;
  let byteLength = 3;
  for (const character of text) {
    byteLength += Buffer.byteLength(character);
    if (byteLength > maxBytes) break;
    end += character.length;
  }
  return `${text.slice(0, end)}…`;
}
