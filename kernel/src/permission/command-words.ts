import type { Node } from "web-tree-sitter";

/** One word of a command: as written, and what the shell passes on, where that is known before it runs. */
export interface Word {
  readonly raw: string;
  /** Null when an expansion, a file pattern or an escape decides it at run time. */
  readonly value: string | null;
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
