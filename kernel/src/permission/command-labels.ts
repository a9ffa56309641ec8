import { createRequire } from "node:module";
import { CookieError } from "@cookie-agent/sdk/protocol";
import type { Node, Parser } from "web-tree-sitter";
import { HOLE, openText, openWord, readWord } from "./command-words.ts";
import { HiddenCode } from "./hidden-code.ts";
import { type OpenCommand, unwrapCommand } from "./unwrap-command.ts";

/** What the rules of a command string look at beside the whole string (S-264). */
export interface CommandLabels {
  /** False: it does not parse, or what it runs is known only when it runs. */
  readonly parsed: boolean;
  /** One unwrapped label per simple command, and one more with the files that it writes by redirection. */
  readonly parts: readonly string[];
  /** Other spellings of the same commands; a specific deny or ask counts on them, an allow never does. */
  readonly outer?: readonly string[];
  /** Commands that a run completes, each with its part; their rules must hold for whatever comes of them. */
  readonly open?: readonly (OpenCommand & { readonly part: string | null })[];
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
  const joined = joinWords(command);
  if (joined !== command) found.readOther(joined);
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

/** Bash drops a backslash at a line's end; within a word the grammar cuts there, on an empty line it joins commands. */
function joinWords(command: string): string {
  return command.replace(/(?<=\S|\n[ \t]*)\\\n/g, "");
}

class Labels {
  readonly #parser: Parser;
  readonly #parts = new Set<string>();
  readonly #outer = new Set<string>();
  readonly #open: (OpenCommand & { readonly part: string | null })[] = [];
  readonly #hidden = new HiddenCode();
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
      // Only the grammar takes the other controls for white space.
      if (tree.rootNode.hasError || /[\r\v\f]/.test(script)) this.#resolved = false;
      this.#visit(tree.rootNode, NOTHING, { script, scriptDepth, depth: 0 });
    } finally {
      tree.delete();
    }
  }

  /** Another reading of the string; which one bash takes is not known. */
  readOther(script: string): void {
    this.#resolved = false;
    this.read(script, 0);
  }

  finish(): CommandLabels {
    return {
      parsed: this.#resolved && !this.#hidden.found && !this.#movesProgram(),
      parts: [...this.#parts],
      outer: [...this.#outer].filter((form) => !this.#parts.has(form)),
      ...(this.#open.length === 0 ? {} : { open: this.#open }),
    };
  }

  /** @param tail What the redirections behind `node` add to its last command. */
  #visit(node: Node, tail: Tail, { script, scriptDepth, depth }: Position): void {
    if (depth > MAX_DEPTH || this.#parts.size > MAX_PARTS) {
      this.#resolved = false;
      return;
    }
    this.#hidden.inspect(node, script);
    const children = node.namedChildren.filter(isNode);
    let inherited = NOTHING;
    let heir: Node | null | undefined = null;
    if (node.type === "redirected_statement") {
      inherited = joinTails(tailOf(redirectsOf(children)), tail);
      heir = node.childForFieldName("body");
    } else if (node.type === "command") {
      this.#addCommand(node, joinTails(tailOf(redirectsOf(children)), tail), scriptDepth);
    } else if (["list", "pipeline", "negated_command"].includes(node.type)) {
      inherited = tail;
      heir = children.at(-1);
    } else {
      inherited = tail;
    }
    if (!heir) {
      if (inherited.writes.length > 0) this.#addWrites(inherited.writes);
      if (inherited.words.length > 0) this.#resolved = false;
    }
    for (const child of children) {
      const handed = heir && child.id === heir.id ? inherited : NOTHING;
      this.#visit(child, handed, { script, scriptDepth, depth: depth + 1 });
    }
  }

  #addWrites(writes: readonly string[]): void {
    const part = writes.join(" ");
    const form = writes.map(openWrite).join(" ");
    this.#parts.add(part);
    if (form.includes(HOLE)) this.#open.push({ label: form, forms: [form], part });
  }

  /** A program named by a relative path is another one in another directory. */
  #movesProgram(): boolean {
    const forms = [...this.#parts, ...this.#outer];
    return (
      forms.some((form) => /^(?:cd|pushd|popd)(?:\s|$)/.test(form)) &&
      forms.some((form) => /^[^\s/][^\s]*\//.test(form))
    );
  }

  #addCommand(node: Node, { writes, words: added }: Tail, scriptDepth: number): void {
    const name = node.childForFieldName("name");
    const operands = [...node.childrenForFieldName("argument").filter(isNode), ...added];
    const words = (name ? [name, ...operands] : operands).map(readWord);
    const { label, outer, script, otherScripts, resolved, open } = unwrapCommand(words);
    const assignments = node.namedChildren
      .filter(isNode)
      .filter((child) => child.type === "variable_assignment")
      .map(textOf);
    if (!resolved) this.#resolved = false;
    if (label !== null) {
      this.#parts.add(label);
      this.#hidden.inspectCommand(label);
    }
    const written = [...(label === null ? [] : [label]), ...writes].join(" ");
    if (writes.length > 0) this.#parts.add(written);
    for (const form of outer) this.#outer.add(form);
    if (assignments.length > 0) {
      this.#outer.add([...assignments, ...words.map((word) => word.raw)].join(" "));
    }
    if (open !== null) {
      const forms =
        assignments.length === 0
          ? []
          : [[...assignments.map(openIfExpanded), ...words.map((word) => openWord(word).raw)]];
      this.#open.push({
        ...open,
        part: label,
        forms: [...open.forms, ...forms.map((form) => form.join(" "))],
      });
    }
    const openWrites = writes.map(openWrite).join(" ");
    if (writes.length > 0 && (open !== null || openWrites.includes(HOLE))) {
      const form = [open?.label ?? label, openWrites].filter((text) => text !== null).join(" ");
      this.#open.push({ label: form, forms: [form], part: written });
    }
    if (script !== null) this.read(script, scriptDepth + 1);
    for (const other of otherScripts) {
      const found = new Labels(this.#parser);
      found.read(other, scriptDepth + 1);
      for (const form of [...found.#parts, ...found.#outer]) this.#outer.add(form);
    }
  }
}

interface Position {
  readonly script: string;
  /** How many scripts this one is a literal in. */
  readonly scriptDepth: number;
  readonly depth: number;
}

/** What stands behind a command among its redirections. */
interface Tail {
  /** The redirections that write files. */
  readonly writes: readonly string[];
  /** Arguments, which the grammar gives to the redirection before them. */
  readonly words: readonly Node[];
}

const NOTHING: Tail = { writes: [], words: [] };

function tailOf(redirects: readonly Node[]): Tail {
  return {
    writes: redirects.filter(writesFile).map(writeOf),
    words: redirects.flatMap(wordsBehind),
  };
}

function joinTails(first: Tail, second: Tail): Tail {
  return {
    writes: [...first.writes, ...second.writes],
    words: [...first.words, ...second.words],
  };
}

function redirectsOf(children: readonly Node[]): Node[] {
  return children.flatMap((child) => {
    if (child.type === "file_redirect") return [child];
    if (child.type !== "heredoc_redirect") return [];
    const inner = child.namedChildren.filter(isNode);
    return [child, ...inner.filter((redirect) => redirect.type === "file_redirect")];
  });
}

function wordsBehind(redirect: Node): Node[] {
  const words = redirect.namedChildren
    .filter(isNode)
    .filter((child) => child.type !== "file_descriptor" && child.type !== "file_redirect");
  if (redirect.type === "file_redirect") return closesDescriptor(redirect) ? words : words.slice(1);
  return words.filter((child) => !child.type.startsWith("heredoc_"));
}

function writeOf(redirect: Node): string {
  const end = wordsBehind(redirect)[0]?.startIndex ?? redirect.endIndex;
  return redirect.text.slice(0, end - redirect.startIndex).trimEnd();
}

function openIfExpanded(assignment: string): string {
  return /[$`]/.test(assignment) ? openText(assignment) : assignment;
}

function openWrite(write: string): string {
  const [operator = ""] = /^\{?\w*\}?[<>&|]+\s*/.exec(write) ?? [];
  const file = write.slice(operator.length);
  return operator + (/[$`*?[{\\]/.test(file) ? openText(file) : file);
}

function closesDescriptor(redirect: Node): boolean {
  return /^\d*[<>]&-/.test(redirect.text);
}

function writesFile(redirect: Node): boolean {
  if (redirect.type !== "file_redirect" || closesDescriptor(redirect)) return false;
  const operator = redirect.children.find((child) => child?.isNamed === false)?.type ?? "";
  const destination = redirect.childForFieldName("destination")?.text ?? "";
  if (!operator.includes(">") || destination === "/dev/null") return false;
  return !(operator.endsWith("&") && /^(?:\d+-?|-)$/.test(destination)) && operator !== ">&-";
}

function textOf(node: Node): string {
  return node.text;
}

function isNode(node: Node | null): node is Node {
  return node !== null;
}
