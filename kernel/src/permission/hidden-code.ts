import type { Node } from "web-tree-sitter";
import { redirectsPrograms } from "./program-variables.ts";

const VARIABLE_BUILTINS: ReadonlySet<string> = new Set(
  "let test read printf mapfile readarray set wait getopts unset declare typeset export".split(" "),
);

/**
 * Finds what a bash string may run although its syntax tree shows no command for it (S-266): text that bash reads a
 * second time as code, variables that decide which program a name means, and places where the grammar and bash are
 * known to cut a string differently.
 */
export class HiddenCode {
  #found = false;
  /** Some variable is read as an arithmetic expression, whose subscripts may hold substitutions. */
  #evaluates = false;
  /** Some variable is given text that is not known to be free of them. */
  #assignsText = false;

  get found(): boolean {
    return this.#found || (this.#evaluates && this.#assignsText);
  }

  /** To be told every named node of the tree of `source`. */
  inspect(node: Node, source: string): void {
    if (!this.#isHarmless(node, source)) this.#found = true;
  }

  /** To be told every simple command: builtins that take names of variables evaluate the subscripts in them. */
  inspectCommand(label: string): void {
    const name = /^\S+/.exec(label)?.[0] ?? "";
    const namesVariable = name === "let" || /\s-[vRp]/.test(label);
    if (!VARIABLE_BUILTINS.has(name) || (name === "printf" && !namesVariable)) return;
    if (namesVariable) this.#evaluates = true;
    if (name !== "let" && name !== "test") this.#assignsText = true;
    if (/['\\]/.test(label) && /`|\$[([]/.test(label)) this.#found = true;
  }

  #isHarmless(node: Node, source: string): boolean {
    const { type, text } = node;
    switch (type) {
      case "raw_string":
        return /^'[^']*'$/.test(text);
      case "ansi_c_string":
        return /^\$'(?:[^'\\]|\\.)*'$/s.test(text);
      case "comment":
        return node.startIndex === 0 || /[\s;&|()]/.test(source.charAt(node.startIndex - 1));
      case "command_substitution":
        return !(text.startsWith("`") && text.includes("\\"));
      case "heredoc_redirect":
        return isPlainHeredoc(node);
      case "heredoc_start":
      case "heredoc_body":
      case "heredoc_content":
      case "heredoc_end":
        return true;
      case "expansion":
        return this.#isHarmlessExpansion(node);
      case "subscript":
        return this.#isHarmlessExpression(text.slice(text.indexOf("[") + 1, -1));
      case "arithmetic_expansion":
        return this.#isHarmlessExpression(text.replace(/^\$(?:\(\(|\[)/, ""));
      case "compound_statement":
        return !text.startsWith("((") || this.#isHarmlessExpression(text);
      case "c_style_for_statement":
        return this.#isHarmlessExpression(headOf(node));
      case "test_command":
        return this.#isHarmlessTest(node);
      case "declaration_command":
        return childrenOf(node).every(isPlainDeclaration);
      case "unset_command":
        return childrenOf(node).every((child) => /^-?\w+$/.test(child.text));
      case "variable_assignment":
        return this.#isHarmlessAssignment(node);
      case "array":
        return childrenOf(node).every((child) => this.#isHarmlessElement(child.text));
      case "for_statement":
        return this.#isHarmlessLoop(node);
      case "word":
        return !/[\s;&|<>'"]/.test(withoutEscapes(text)) && !holdsSubstitution(text);
      case "regex":
      case "extglob_pattern":
        return !holdsSubstitution(text) && !/[<>]\(/.test(text);
      default:
        return node.childCount > 0 || !holdsSubstitution(text);
    }
  }

  /** `@P` reads the value as a prompt; quotes in an expansion mean different things with and without quotes around. */
  #isHarmlessExpansion(node: Node): boolean {
    const { text } = node;
    const assignment = /^\$\{(\w+)(?:\[[^\]]*\])?:?=/.exec(text);
    if (assignment) {
      if (redirectsPrograms(assignment[1] ?? "")) return false;
      this.#assignsText = true;
    }
    const offset = /^\$\{\w+(?:\[[^\]]*\])?:(?![-+=?])(.*)\}$/s.exec(text);
    if (offset && !this.#isHarmlessExpression(offset[1] ?? "")) return false;
    if (text.startsWith("${!")) this.#evaluates = true;
    return (
      !/@P\}$/.test(text) && quotesIn(node).every((quoted) => /^\$?'[\w ,.:/=+-]*'$/.test(quoted))
    );
  }

  #isHarmlessExpression(expression: string): boolean {
    if (/[A-Za-z_$]/.test(expression)) this.#evaluates = true;
    return !/['"\\`]|\$[('{]/.test(expression.replace(/\$\{\w+\}/g, ""));
  }

  #isHarmlessTest(node: Node): boolean {
    const { text } = node;
    const isArithmetic = text.startsWith("[[") && /\s-(?:eq|ne|lt|le|gt|ge)\s/.test(text);
    const namesVariable = /\s-[vR]\s/.test(text);
    if (isArithmetic || namesVariable) this.#evaluates = true;
    const quoted = quotesIn(node).some(holdsSubstitution);
    if (namesVariable) return !/\s-[vR]\s+(?!\w+\s)/.test(text);
    return !quoted && !(isArithmetic && /\\|`|\$\(/.test(text));
  }

  #isHarmlessAssignment(node: Node): boolean {
    const name = node.childForFieldName("name")?.text ?? "";
    const value = node.childForFieldName("value");
    if (value && !isPlainText(value)) this.#assignsText = true;
    return !redirectsPrograms(name.replace(/\[.*$/s, ""));
  }

  #isHarmlessElement(element: string): boolean {
    if (!isPlainLiteral(element)) this.#assignsText = true;
    const subscript = /^\[([^\]]*)\]/.exec(element);
    return subscript === null || this.#isHarmlessExpression(subscript[1] ?? "");
  }

  #isHarmlessLoop(node: Node): boolean {
    const [variable, ...values] = childrenOf(node);
    const words = values.filter((value) => value.type !== "do_group");
    if (!words.every(isPlainText)) this.#assignsText = true;
    return !redirectsPrograms(variable?.text ?? "");
  }
}

/** True where bash would still find a substitution that the grammar took for text. */
function holdsSubstitution(text: string): boolean {
  return /`|\$[([]/.test(withoutEscapes(text));
}

function withoutEscapes(text: string): string {
  return text.replace(/\\./gs, "");
}

/** The marker is a name, the body ends at the first line that is the marker, and every substitution in it is known. */
function isPlainHeredoc(node: Node): boolean {
  const [start, body, end] = ["heredoc_start", "heredoc_body", "heredoc_end"].map((type) =>
    childrenOf(node).find((child) => child.type === type),
  );
  const marker = /^(?:(\w+)|'(\w+)'|"(\w+)"|\\(\w+))$/.exec(start?.text ?? "");
  const name = marker?.slice(1).find((group) => group !== undefined);
  if (!start || !body || !end || name === undefined || end.text.trim() !== name) return false;
  const before = node.text.slice(
    start.endIndex - node.startIndex,
    body.startIndex - node.startIndex,
  );
  if (!/^[^\n]*\n$/.test(before)) return false;
  const indent = node.text.startsWith("<<-") ? /^\t+/ : /^(?!)/;
  const lines = body.text.split("\n").map((line) => line.replace(indent, ""));
  if (lines.includes(name) || !/^\t*$/.test(lines.at(-1) ?? "")) return false;
  if (marker?.[1] === undefined) return true;
  return !body.text.includes("\\\n") && !holdsSubstitution(textOutsideChildren(body));
}

function textOutsideChildren(node: Node): string {
  let text = "";
  let at = node.startIndex;
  for (const child of childrenOf(node)) {
    if (child.type === "heredoc_content") continue;
    text += `${node.text.slice(at - node.startIndex, child.startIndex - node.startIndex)} `;
    at = child.endIndex;
  }
  return text + node.text.slice(at - node.startIndex);
}

function isPlainDeclaration(child: Node): boolean {
  if (child.type === "variable_name") return true;
  if (child.type === "variable_assignment") {
    const value = child.childForFieldName("value");
    return value === null || !quotesIn(value).some((quoted) => /[(`]/.test(quoted));
  }
  // `i` evaluates every later value, `n` makes the value the name of a variable.
  return /^(?:[-+][A-Zafgprtux]+|\w+)$/.test(child.text);
}

function isPlainText(node: Node): boolean {
  return node.type === "arithmetic_expansion" || isPlainLiteral(node.text);
}

function isPlainLiteral(text: string): boolean {
  return /^(?:[\w./:=,@%+-]*|"[\w ./:=,@%+-]*"|'[\w ./:=,@%+-]*')$/.test(text);
}

/** Every literal below a node, with its quotes. */
function quotesIn(node: Node): string[] {
  if (node.type === "raw_string" || node.type === "ansi_c_string") return [node.text];
  if (node.type === "command_substitution") return [];
  if (node.childCount === 0)
    return node.text.includes("\\") ? [node.text.replaceAll("\\", "")] : [];
  return childrenOf(node).flatMap(quotesIn);
}

function headOf(loop: Node): string {
  const body = loop.childForFieldName("body");
  return body
    ? loop.text.slice(0, body.startIndex - loop.startIndex).replace(/^for/, "")
    : loop.text;
}

function childrenOf(node: Node): Node[] {
  return node.namedChildren.filter((child): child is Node => child !== null);
}
