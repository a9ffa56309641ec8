import { createRequire } from "node:module";
import { CookieError } from "@cookie-agent/sdk/protocol";
import type { Node, Parser } from "web-tree-sitter";
import { readWord } from "./command-words.ts";
import { unwrapCommand } from "./unwrap-command.ts";

/** What the rules of a command string look at beside the whole string (S-264). */
export interface CommandLabels {
  /** False: it does not parse, or what it runs is known only when it runs. */
  readonly parsed: boolean;
  /** One unwrapped label per simple command, and one more with the files that it writes by redirection. */
  readonly parts: readonly string[];
  /** Other spellings of the same commands; a specific deny or ask counts on them, an allow never does. */
  readonly outer?: readonly string[];
}

const MAX_COMMAND_LENGTH = 128 * 1024;
const MAX_PARTS = 4096;
const MAX_DEPTH = 400;
const MAX_SCRIPT_DEPTH = 8;

let loading: Promise<Parser> | undefined;

/**
 * Reads a command string as bash and labels each simple command in it, wherever it stands: lists, pipes, subshells,
 * bodies, substitutions, here-documents and literals that another shell reads. The parser is loaded at first use.
 *
 * @throws CookieError `engine` when the installation lacks the parser.
 */
export async function labelCommand(command: string): Promise<CommandLabels> {
  // A shell ends the string at a NUL, the grammar need not.
  if (command.length > MAX_COMMAND_LENGTH || command.includes("\0")) {
    return { parsed: false, parts: [] };
  }
  loading ??= loadParser();
  const found = new Labels(await loading);
  found.read(command, 0);
  return found.finish();
}

async function loadParser(): Promise<Parser> {
  try {
    const { Language, Parser } = await import("web-tree-sitter");
    await Parser.init();
    const grammar = createRequire(import.meta.url).resolve(
      "tree-sitter-bash/tree-sitter-bash.wasm",
    );
    return new Parser().setLanguage(await Language.load(grammar));
  } catch (cause) {
    loading = undefined;
    throw new CookieError(
      "engine",
      "the bash grammar that permission rules need could not be loaded; reinstall cookie agent",
      { cause },
    );
  }
}

class Labels {
  readonly #parser: Parser;
  readonly #parts = new Set<string>();
  readonly #outer = new Set<string>();
  #resolved = true;

  constructor(parser: Parser) {
    this.#parser = parser;
  }

  read(script: string, scriptDepth: number): void {
    const tree = scriptDepth > MAX_SCRIPT_DEPTH ? null : this.#parser.parse(script);
    if (tree === null) {
      this.#resolved = false;
      return;
    }
    try {
      if (tree.rootNode.hasError) this.#resolved = false;
      this.#visit(tree.rootNode, [], scriptDepth, 0);
    } finally {
      tree.delete();
    }
  }

  finish(): CommandLabels {
    return {
      parsed: this.#resolved,
      parts: [...this.#parts],
      outer: [...this.#outer].filter((form) => !this.#parts.has(form)),
    };
  }

  /** @param writes The redirections to files of the statement that `node` is the last command of. */
  #visit(node: Node, writes: readonly string[], scriptDepth: number, depth: number): void {
    if (depth > MAX_DEPTH || this.#parts.size > MAX_PARTS || hidesSubstitution(node)) {
      this.#resolved = false;
      return;
    }
    const children = node.namedChildren.filter(isNode);
    let inherited: readonly string[] = [];
    let heir: Node | null | undefined = null;
    if (node.type === "redirected_statement") {
      inherited = [...writes, ...redirectsOf(children).filter(writesFile).map(textOf)];
      heir = node.childForFieldName("body");
    } else if (node.type === "command") {
      const own = redirectsOf(children).filter(writesFile).map(textOf);
      this.#addCommand(node, [...writes, ...own], scriptDepth);
    } else if (["list", "pipeline", "negated_command"].includes(node.type)) {
      inherited = writes;
      heir = children.at(-1);
    } else {
      inherited = writes;
    }
    if (!heir && inherited.length > 0) this.#parts.add(inherited.join(" "));
    for (const child of children) {
      const handed = heir && child.id === heir.id ? inherited : [];
      this.#visit(child, handed, scriptDepth, depth + 1);
    }
  }

  #addCommand(node: Node, writes: readonly string[], scriptDepth: number): void {
    const name = node.childForFieldName("name");
    const operands = node.childrenForFieldName("argument").filter(isNode);
    const words = (name ? [name, ...operands] : operands).map(readWord);
    const { label, outer, script, resolved } = unwrapCommand(words);
    const assignments = node.namedChildren
      .filter(isNode)
      .filter((child) => child.type === "variable_assignment")
      .map(textOf);
    if (!resolved) this.#resolved = false;
    if (label !== null) this.#parts.add(label);
    if (writes.length > 0)
      this.#parts.add([...(label === null ? [] : [label]), ...writes].join(" "));
    for (const form of outer) this.#outer.add(form);
    if (assignments.length > 0) {
      this.#outer.add([...assignments, ...words.map((word) => word.raw)].join(" "));
    }
    if (script !== null) this.read(script, scriptDepth + 1);
  }
}

function redirectsOf(children: readonly Node[]): Node[] {
  return children.flatMap((child) => {
    if (child.type === "file_redirect") return [child];
    if (child.type !== "heredoc_redirect") return [];
    return child.namedChildren.filter(isNode).filter((inner) => inner.type === "file_redirect");
  });
}

function writesFile(redirect: Node): boolean {
  const operator = redirect.children.find((child) => child?.isNamed === false)?.type ?? "";
  const destination = redirect.childForFieldName("destination")?.text ?? "";
  if (!operator.includes(">") || destination === "/dev/null") return false;
  return !(operator.endsWith("&") && /^(?:\d+-?|-)$/.test(destination)) && operator !== ">&-";
}

/** A substitution that the grammar took for plain text would run unseen. */
function hidesSubstitution(node: Node): boolean {
  if (node.childCount > 0 || !["word", "string_content", "variable_name"].includes(node.type)) {
    return false;
  }
  return /`|\$\(/.test(node.text.replace(/\\./gs, ""));
}

function textOf(node: Node): string {
  return node.text;
}

function isNode(node: Node | null): node is Node {
  return node !== null;
}
