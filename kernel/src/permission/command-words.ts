import type { Node } from "web-tree-sitter";

/** One word of a command: as written, and what the shell passes on, where that is known before it runs. */
export interface Word {
  readonly raw: string;
  /** Null when an expansion, a file pattern or an escape decides it at run time. */
  readonly value: string | null;
}

/** Stands in a shape for any text at all; no command string that is read holds this character. */
export const HOLE = "\0";

/** The word with all that only a run decides replaced by a hole. */
export function openWord(word: Word): Word {
  if (word.value !== null) return word;
  const open = openText(word.raw);
  return { raw: open, value: open };
}

/** What stands before the first and behind the last character that the shell does not simply pass on. */
export function openText(text: string): string {
  const prefix = /^[\w./:=,@%+-]*/.exec(text)?.[0] ?? "";
  const [suffix = ""] = /[\w./:=,@%+-]*$/.exec(text.slice(prefix.length)) ?? [];
  const before = text.at(-suffix.length - 1);
  if (before === "\\") return prefix + HOLE;
  // The name of the variable, one special character or more of a word, is no text.
  return prefix + HOLE + (before === "$" ? suffix.replace(/^.\w*/, "") : suffix);
}

export function readWord(node: Node): Word {
  const raw = joinLines(node.text);
  return { raw, value: isExpanded(unquotedText(node)) ? null : literalValue(node) };
}

function literalValue(node: Node): string | null {
  switch (node.type) {
    case "word":
    case "number":
      return joinLines(node.text).replace(/\\(.)/gs, "$1");
    case "raw_string":
      return node.text.slice(1, -1);
    case "ansi_c_string":
      return node.text.includes("\\") ? null : node.text.slice(2, -1);
    case "string":
      return node.namedChildren.every((child) => child?.type === "string_content")
        ? joinLines(node.text.slice(1, -1)).replace(/\\(["\\$`])/g, "$1")
        : null;
    case "command_name":
    case "concatenation": {
      const values = node.children.map((child) => (child ? literalValue(child) : null));
      return values.includes(null) ? null : values.join("");
    }
    default:
      return null;
  }
}

function unquotedText(node: Node): string {
  if (node.type === "word") return node.text.replace(/\\./gs, "");
  if (node.type !== "command_name" && node.type !== "concatenation") return "";
  return node.children.map((child) => (child ? unquotedText(child) : "")).join("");
}

function isExpanded(unquoted: string): boolean {
  const inBraces = unquoted.slice(unquoted.indexOf("{") + 1, unquoted.lastIndexOf("}"));
  const hasBraces = unquoted.includes("{") && unquoted.includes("}");
  return /[*?[]/.test(unquoted) || (hasBraces && /,|\.\./.test(inBraces));
}

function joinLines(text: string): string {
  return text.replaceAll("\\\n", "");
}
