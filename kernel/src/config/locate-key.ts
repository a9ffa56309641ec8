import type { AST } from "toml-eslint-parser";
import type { KeyPath } from "./key-path.ts";

export interface KeyPlace {
  /** 1-based. */
  readonly line: number;
  /** 1-based. */
  readonly column: number;
}

interface PlacedKey {
  readonly path: KeyPath;
  readonly place: KeyPlace;
}

/** Where a key stands, or the nearest table around it when it is missing; undefined when the text defeats the parser. */
export async function locateKey(text: string, path: KeyPath): Promise<KeyPlace | undefined> {
  let best: PlacedKey | undefined;
  for (const placed of await placedKeys(text)) {
    if (!startsWith(path, placed.path)) continue;
    if (best === undefined || placed.path.length > best.path.length) best = placed;
  }
  return best?.place;
}

/** The keys of a table in the order of their first mention; JavaScript objects put integer-like ones first (C-021). */
export async function authoredOrder(text: string, table: KeyPath): Promise<string[]> {
  const names = new Set<string>();
  for (const { path } of await placedKeys(text)) {
    const name = path[table.length];
    if (typeof name === "string" && startsWith(path, table)) names.add(name);
  }
  return [...names];
}

async function placedKeys(text: string): Promise<PlacedKey[]> {
  const { parseTOML } = await import("toml-eslint-parser");
  const keys: PlacedKey[] = [];
  try {
    for (const node of parseTOML(withoutLongRuns(text)).body[0].body) {
      if (node.type === "TOMLTable") collectHeader(node, keys);
      else collectPair(node, [], keys);
    }
  } catch {
    // An error without a line is better than none: the other parser took this text.
  }
  return keys;
}

/** The parser fails on very long strings; without their middles every key keeps its line. */
function withoutLongRuns(text: string): string {
  return text.replace(/[^"'\\\n]{1024,}/g, (run) => run.slice(0, 1024));
}

function collectHeader(table: AST.TOMLTable, keys: PlacedKey[]): void {
  let segment = 0;
  for (let end = 1; end <= table.resolvedKey.length; end += 1) {
    const path = table.resolvedKey.slice(0, end);
    // Positions in arrays of tables are resolved, not written.
    const written = table.key.keys[typeof path.at(-1) === "number" ? segment - 1 : segment++];
    if (written !== undefined) keys.push({ path, place: placeOf(written) });
  }
  for (const pair of table.body) collectPair(pair, table.resolvedKey, keys);
}

function collectPair(pair: AST.TOMLKeyValue, base: KeyPath, keys: PlacedKey[]): void {
  let path = base;
  for (const written of pair.key.keys) {
    path = [...path, written.type === "TOMLBare" ? written.name : written.value];
    keys.push({ path, place: placeOf(written) });
  }
  collectValue(pair.value, path, keys);
}

function collectValue(value: AST.TOMLContentNode, path: KeyPath, keys: PlacedKey[]): void {
  if (value.type === "TOMLInlineTable") {
    for (const pair of value.body) collectPair(pair, path, keys);
  } else if (value.type === "TOMLArray") {
    value.elements.forEach((element, index) => {
      keys.push({ path: [...path, index], place: placeOf(element) });
      collectValue(element, [...path, index], keys);
    });
  }
}

function placeOf(node: AST.TOMLNode): KeyPlace {
  return { line: node.loc.start.line, column: node.loc.start.column + 1 };
}

function startsWith(path: KeyPath, prefix: KeyPath): boolean {
  return prefix.length <= path.length && prefix.every((segment, index) => segment === path[index]);
}
