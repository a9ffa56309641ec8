import { HOLE, openWord, type Word } from "./command-words.ts";
import { redirectsPrograms } from "./program-variables.ts";

/** What one simple command comes to once the wrappers in front of it are taken off. */
export interface UnwrappedCommand {
  /** The innermost command; null when nothing but keywords or a script is left. */
  readonly label: string | null;
  /** The same command as it stood inside each wrapper, and without quotes or the directory of its program. */
  readonly outer: readonly string[];
  /** A literal that a shell will read as commands. */
  readonly script: string | null;
  /** The same of what `find` runs; only a deny or an ask looks at them. */
  readonly otherScripts: readonly string[];
  /** False when what will run cannot be known before it runs. */
  readonly resolved: boolean;
  /** Present when expansions or the input of `xargs` decide some arguments. */
  readonly open: OpenCommand | null;
}

/** A command with holes: every text that one of them may turn into is what may really run. */
export interface OpenCommand {
  /** The label with holes; null where there is no label. */
  readonly label: string | null;
  /** All spellings with holes, those within wrappers too. */
  readonly forms: readonly string[];
}

interface Wrapper {
  /** Letters of short options without, and with, a value. */
  readonly flags: string;
  readonly valued?: string;
  readonly longFlags?: readonly string[];
  readonly longValued?: readonly string[];
  /** Letters that make it a command of its own, such as `command -v`. */
  readonly queries?: string;
  /** Words between the options and the command. */
  readonly operands?: number;
  readonly assignments?: boolean;
  /** Alone it runs nothing. */
  readonly silentAlone?: boolean;
}

const SUDO: Wrapper = {
  flags: "ABbEHiknPSs",
  valued: "CDghpRrTtUu",
  longFlags: [
    "askpass",
    "background",
    "bell",
    "login",
    "non-interactive",
    "preserve-env",
    "preserve-groups",
    "reset-timestamp",
    "set-home",
    "shell",
    "stdin",
  ],
  longValued: ["chdir", "chroot", "close-from", "group", "host", "prompt", "role", "type", "user"],
  queries: "eKlVv",
  assignments: true,
};

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  [
    "env",
    {
      flags: "0iv",
      valued: "Cu",
      longFlags: ["debug", "ignore-environment", "null"],
      longValued: ["chdir", "unset"],
      assignments: true,
    },
  ],
  ["sudo", SUDO],
  ["doas", { flags: "nS", valued: "Cu", queries: "Ls" }],
  ["nohup", { flags: "" }],
  [
    "time",
    {
      flags: "apqv",
      valued: "fo",
      longFlags: ["append", "portability", "quiet", "verbose"],
      longValued: ["format", "output"],
      assignments: true,
      silentAlone: true,
    },
  ],
  [
    "xargs",
    {
      flags: "0oprtx",
      valued: "adEILnPs",
      longFlags: ["exit", "interactive", "no-run-if-empty", "null", "open-tty", "verbose"],
      longValued: [
        "arg-file",
        "delimiter",
        "max-args",
        "max-chars",
        "max-procs",
        "process-slot-var",
      ],
    },
  ],
  ["command", { flags: "p", queries: "Vv", silentAlone: true }],
  ["builtin", { flags: "", silentAlone: true }],
  ["exec", { flags: "cl", valued: "a", silentAlone: true }],
  ["coproc", { flags: "", silentAlone: true }],
  ["nice", { flags: "", valued: "n", longValued: ["adjustment"] }],
  ["setsid", { flags: "cfw", longFlags: ["ctty", "fork", "wait"] }],
  ["stdbuf", { flags: "", valued: "eio", longValued: ["error", "input", "output"] }],
  [
    "timeout",
    {
      flags: "v",
      valued: "ks",
      longFlags: ["foreground", "preserve-status", "verbose"],
      longValued: ["kill-after", "signal"],
      operands: 1,
    },
  ],
]);

const SHELLS: ReadonlySet<string> = new Set(["ash", "bash", "dash", "ksh", "sh", "zsh"]);
const SHELL_LONG_FLAGS: ReadonlySet<string> = new Set([
  "login",
  "noediting",
  "noprofile",
  "norc",
  "posix",
  "restricted",
  "verbose",
]);
// Behind `time` and `coproc` the grammar reads these as words of a command.
const LEADING_KEYWORDS: ReadonlySet<string> = new Set(
  "! { } if then elif else fi while until do done".split(" "),
);
const OTHER_KEYWORDS: ReadonlySet<string> = new Set("for select case esac function [[".split(" "));

const MAX_WRAPPERS = 32;

/** Takes wrappers off until a command or a script is left (E-202); an option it does not know ends it unresolved. */
export function unwrapCommand(words: readonly Word[]): UnwrappedCommand {
  const outer: string[] = [];
  const otherScripts: string[] = [];
  let rest = words;
  let input: XargsInput | null = null;
  let isPlain = true;
  const openForms: string[] = [];

  const end = (label: string | null, resolved: boolean, script: string | null = null) => ({
    label,
    outer: outer.filter((form) => form !== label),
    script,
    otherScripts,
    resolved: resolved && isPlain,
    open:
      openForms.length === 0
        ? null
        : { label: label === null ? null : labelOf(openWords(rest, input)), forms: openForms },
  });

  for (let depth = 0; ; depth += 1) {
    if (depth > MAX_WRAPPERS) return end(labelOf(rest), false);
    const first = rest.findIndex(({ raw }) => !LEADING_KEYWORDS.has(raw));
    rest = first < 0 ? [] : rest.slice(first);
    // The name of a new descriptor, which the grammar takes for the command.
    if (/^\{\w+\}$/.test(rest[0]?.raw ?? "")) {
      isPlain = false;
      rest = rest.slice(1);
    }
    const name = rest[0];
    // xargs then takes the command itself from its input.
    if (name === undefined) return end(null, input === null);
    outer.push(...formsOf(rest));
    const opened = openWords(rest, input);
    if (opened.some(({ raw }) => raw.includes(HOLE))) openForms.push(...formsOf(opened));
    if (name.value === null || OTHER_KEYWORDS.has(name.raw) || isReplaced(name.value, input)) {
      return end(labelOf(rest), false);
    }
    const program = baseName(name.value);
    if (program === "eval") {
      const script = joinLiterals(rest.slice(rest[1]?.raw === "--" ? 2 : 1));
      const known = script !== null && input === null;
      return known ? end(null, true, script) : end(labelOf(rest), false);
    }
    if (SHELLS.has(program)) {
      const shell = readShellOptions(rest.slice(1));
      if (shell === "no_script") return end(labelOf(rest), true);
      const known = shell !== null && !isReplaced(shell.script, input);
      return known ? end(null, true, shell.script) : end(labelOf(rest), false);
    }
    if (program === "trap" && rest.length > 2) {
      const action = rest[rest[1]?.raw === "--" ? 2 : 1]?.value ?? null;
      return end(labelOf(rest), action !== null, action);
    }
    if (program === "find") {
      const executed = executedByFind(rest);
      for (const inner of executed.map(unwrapCommand)) {
        outer.push(...inner.outer, ...(inner.label === null ? [] : [inner.label]));
        if (inner.script !== null) otherScripts.push(inner.script);
      }
      const found = { replace: "{}" };
      openForms.push(...executed.flatMap((words) => formsOf(words.map(openIn(found)))));
    }
    const wrapper = WRAPPERS.get(program);
    if (wrapper === undefined) return end(labelOf(rest), true);
    const inner = skipOptions(wrapper, rest.slice(1));
    if (inner === "query") return end(labelOf(rest), true);
    if (inner === null) return end(labelOf(rest), false);
    if (inner.length === 0) {
      return end(wrapper.silentAlone ? null : labelOf(rest), input === null);
    }
    if (program === "xargs") input = { replace: replacedText(rest.slice(1)) };
    const isNamedCoprocess = program === "coproc" && inner[1]?.raw === "{";
    rest = isNamedCoprocess ? inner.slice(2) : inner;
  }
}

/** The command behind every `-exec`; only a deny or an ask looks at it. */
function executedByFind(words: readonly Word[]): Word[][] {
  const commands: Word[][] = [];
  let isOpen = false;
  for (const word of words) {
    if (/^-(?:exec|ok)(?:dir)?$/.test(word.value ?? "")) {
      commands.push([]);
      isOpen = true;
    } else if (word.value === ";" || word.value === "+") {
      isOpen = false;
    } else if (isOpen) {
      commands.at(-1)?.push(word);
    }
  }
  return commands;
}

interface XargsInput {
  readonly replace: string | null;
}

/** What comes from the input of `xargs` is open too: what it replaces, else what it appends. */
function openWords(words: readonly Word[], input: XargsInput | null): Word[] {
  const opened = words.map(openIn(input));
  return input === null || input.replace ? opened : [...opened, { raw: HOLE, value: HOLE }];
}

function openIn(input: XargsInput | null): (word: Word) => Word {
  return (word) => openWord(isReplaced(word.raw, input) ? { raw: word.raw, value: null } : word);
}

/** The words after the options of a wrapper; null when they cannot be told apart. */
function skipOptions(wrapper: Wrapper, words: readonly Word[]): readonly Word[] | "query" | null {
  let at = 0;
  if (wrapper.assignments && words.some(assignsProgram)) return null;
  for (; at < words.length; at += 1) {
    const word = words[at]?.value ?? "";
    if (wrapper.assignments && isAssignment(words[at])) continue;
    if (!word.startsWith("-")) break;
    if (word === "--") {
      at += 1;
      break;
    }
    const width = word.startsWith("--") ? longWidth(wrapper, word) : shortWidth(wrapper, word);
    if (typeof width !== "number") return width;
    at += width - 1;
  }
  while (wrapper.assignments && isAssignment(words[at])) at += 1;
  const operands = words.slice(at, at + (wrapper.operands ?? 0));
  if (operands.some((word) => word.value === null)) return null;
  return words.slice(at + operands.length);
}

/** An expansion counts only within quotes: without them the shell may split it into further words. */
function isAssignment(word: Word | undefined): boolean {
  if (word === undefined) return false;
  if (word.value !== null) return /^[A-Za-z_]\w*=/.test(word.value);
  return /^[A-Za-z_]\w*="(?:[^"\\]|\\.)*"$/s.test(word.raw);
}

function assignsProgram(word: Word): boolean {
  return redirectsPrograms(/^([A-Za-z_]\w*)=/.exec(word.value ?? word.raw)?.[1] ?? "");
}

function longWidth(wrapper: Wrapper, word: string): number | null {
  const [name = "", value] = word.slice(2).split("=", 2);
  if (wrapper.longValued?.includes(name)) return value === undefined ? 2 : 1;
  return wrapper.longFlags?.includes(name) ? 1 : null;
}

function shortWidth(wrapper: Wrapper, word: string): number | "query" | null {
  const letters = word.slice(1);
  if (letters === "" || /^\d+$/.test(letters)) return 1;
  for (const [index, letter] of [...letters].entries()) {
    if (wrapper.valued?.includes(letter)) return index + 1 === letters.length ? 2 : 1;
    if (wrapper.queries?.includes(letter)) return "query";
    if (!wrapper.flags.includes(letter)) return null;
  }
  return 1;
}

/** The literal behind `-c`; null when there is a `-c` whose text is not known, or an unknown option. */
function readShellOptions(words: readonly Word[]): { script: string } | "no_script" | null {
  let readsCommand = false;
  let at = 0;
  for (; at < words.length; at += 1) {
    const word = words[at]?.value;
    if (word === null || word === undefined) return null;
    if (word === "--" || word === "-") {
      at += 1;
      break;
    }
    if (word.startsWith("--")) {
      if (word === "--rcfile" || word === "--init-file") at += 1;
      else if (!SHELL_LONG_FLAGS.has(word.slice(2))) return null;
    } else if (/^[-+][A-Za-z]+$/.test(word)) {
      if (word.startsWith("-") && word.includes("c")) readsCommand = true;
      at += word.replace(/[^oO]/g, "").length;
    } else {
      break;
    }
  }
  if (!readsCommand) return "no_script";
  const script = words[at]?.value;
  return script === null || script === undefined ? null : { script };
}

function joinLiterals(words: readonly Word[]): string | null {
  const values = words.map((word) => word.value);
  return values.includes(null) ? null : values.join(" ");
}

function replacedText(options: readonly Word[]): string | null {
  const at = options.findIndex((word) => word.value?.startsWith("-I"));
  const value = options[at]?.value;
  return (value === "-I" ? options[at + 1]?.value : value?.slice(2)) ?? null;
}

function isReplaced(text: string, input: XargsInput | null): boolean {
  return input?.replace ? text.includes(input.replace) : false;
}

function labelOf(words: readonly Word[]): string {
  return words.map((word, index) => (index === 0 ? (word.value ?? word.raw) : word.raw)).join(" ");
}

function formsOf(words: readonly Word[]): string[] {
  const plain = words.map((word) => word.value ?? word.raw).join(" ");
  const label = labelOf(words);
  const name = words[0]?.value ?? "";
  const directory = name.length - baseName(name).length;
  return [label, plain, label.slice(directory), plain.slice(directory)];
}

function baseName(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}
