/** Controls, and the marks that reorder or break lines on a screen. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/gu;

/** One line that is safe on a terminal, whatever a model, a file or a log wrote into it. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, " ");
}

/** Several lines that are safe on a terminal: newline and tab survive, every other control goes. */
export function printableLines(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, "");
}

/** One JSON document without a control character, so that a terminal shows it as it is. */
export function jsonLine(value: unknown): string {
  const asEscape = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(value).replace(/[\x7F-\x9F\u2028\u2029]/g, asEscape)}\n`;
}
