import { cutUtf8 } from "../support/safe-text.ts";

/** An excerpt of the first message as a title: white space folded, at most `maxChars` characters (S-031). */
export function excerptTitle(input: string, maxChars: number): string | null {
  const folded = input.replace(/[\s\p{Cc}]+/gu, " ").trim();
  const cut = cutUtf8([...folded].slice(0, maxChars).join(""), 512).trim();
  return cut === "" ? null : cut;
}
