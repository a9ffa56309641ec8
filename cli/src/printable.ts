/** Controls, and what no screen shows or what reorders a line; the joiners and selectors of an emoji stay. */
const UNPRINTABLE =
  /(?!(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\uFE0F)\u200D\p{Extended_Pictographic})(?!(?<=\p{Emoji})(?:\uFE0E|\uFE0F))[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** One line that is safe on a terminal, whatever a model, a file or a log wrote into it. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, " ");
}

/** Several lines that are safe on a terminal: newline and tab survive, other controls and what reorders text go. */
export function printableLines(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\u202A-\u202E\u2066-\u2069]/gu, "");
}

/** One JSON document without a control character, so that a terminal shows it as it is. */
export function jsonLine(value: unknown): string {
  const asEscape = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(value).replace(/[\x7F-\x9F\u2028\u2029]/g, asEscape)}\n`;
}
