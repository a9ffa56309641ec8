const WORKSPACE_DIR = "${workspace_dir}";
export const ANY_RUN = -1;
export const ANY_ONE = -2;

/** A pattern as code points; the two wildcards are negative, so no text can be mistaken for them. */
export type CompiledPattern = readonly number[];

/**
 * True when the whole text matches (C-012): `*` is any run, `/` included, `?` one code point, all else literal;
 * a trailing ` *` also matches the text without it. Takes time proportional to pattern × text (C-016).
 */
export function matchPattern(pattern: string, text: string): boolean {
  return matchCompiled(compilePattern(pattern), toCodePoints(text));
}

/**
 * Replaces `${workspace_dir}` by the given directory, taken literally: a `*` in its name is no wildcard (C-014).
 * Without a directory the expression stays literal text.
 */
export function compilePattern(pattern: string, workspaceDir?: string): CompiledPattern {
  const pieces = workspaceDir === undefined ? [pattern] : pattern.split(WORKSPACE_DIR);
  const directory = toCodePoints(workspaceDir ?? "");
  return pieces.flatMap((piece, index) => [
    ...(index > 0 ? directory : []),
    ...compilePiece(piece),
  ]);
}

export function holdsWorkspaceDir(pattern: string): boolean {
  return pattern.includes(WORKSPACE_DIR);
}

/** What decides between several matching patterns: more literals win, then fewer wildcards (C-015). */
export function specificityOf(pattern: CompiledPattern): { literals: number; wildcards: number } {
  const literals = pattern.filter((token) => token >= 0).length;
  return { literals, wildcards: pattern.length - literals };
}

export function matchCompiled(pattern: CompiledPattern, text: readonly number[]): boolean {
  const suffix = pattern.length - 2;
  const optionalSuffix = pattern[suffix] === 0x20 && pattern[suffix + 1] === ANY_RUN;
  return matchTokens(pattern, text) || (optionalSuffix && matchTokens(pattern.slice(0, -2), text));
}

/** True when some text that begins with `prefix` matches: the positions reached by the prefix are followed. */
export function canMatchPrefix(pattern: string, prefix: string): boolean {
  const tokens = compilePattern(pattern);
  let reached = skipRuns(tokens, new Set([0]));
  for (const point of toCodePoints(prefix)) {
    const next = new Set<number>();
    for (const position of reached) {
      const token = tokens[position];
      if (token === ANY_RUN) next.add(position);
      else if (token === ANY_ONE || token === point) next.add(position + 1);
    }
    reached = skipRuns(tokens, next);
  }
  return reached.size > 0;
}

/** A text with holes, which match any run, as code points. */
export function compileShape(shape: string, hole: string): CompiledPattern {
  return [...shape].map((character) => (character === hole ? ANY_RUN : codePoint(character)));
}

/** True only when the pattern matches every text that the holes of a shape may turn into; a `?` is not followed. */
export function coversShape(pattern: CompiledPattern, shape: CompiledPattern): boolean {
  const vanished = shape.filter((token, at) => !isOwnHole(shape, token === 0x20 ? at + 1 : at));
  return (
    !pattern.includes(ANY_ONE) && matchCompiled(pattern, shape) && matchCompiled(pattern, vanished)
  );
}

/**
 * True when the pattern matches some text that the holes of a shape may turn into; a word that is only a hole may
 * also vanish with the space before it. Takes time proportional to pattern × shape.
 */
export function meetsShape(pattern: CompiledPattern, shape: CompiledPattern): boolean {
  const suffix = pattern.length - 2;
  const optionalSuffix = pattern[suffix] === 0x20 && pattern[suffix + 1] === ANY_RUN;
  return (
    meetsTokens(pattern, shape) || (optionalSuffix && meetsTokens(pattern.slice(0, -2), shape))
  );
}

/** True when every literal of the pattern is one of the given code points. */
export function isSpelledWith(pattern: string, characters: ReadonlySet<number>): boolean {
  return compilePattern(pattern).every((token) => token < 0 || characters.has(token));
}

export function toCodePoints(text: string): number[] {
  return [...text].map(codePoint);
}

// Only the last star can ever need another try: an earlier one has already matched as little as possible.
function matchTokens(pattern: CompiledPattern, text: readonly number[]): boolean {
  let at = 0;
  let position = 0;
  let starPosition = -1;
  let starAt = 0;
  while (at < text.length) {
    const token = pattern[position];
    if (token === ANY_RUN) {
      starPosition = position;
      starAt = at;
      position += 1;
    } else if (token !== undefined && (token === ANY_ONE || token === text[at])) {
      position += 1;
      at += 1;
    } else if (starPosition >= 0) {
      starAt += 1;
      at = starAt;
      position = starPosition + 1;
    } else {
      return false;
    }
  }
  while (pattern[position] === ANY_RUN) position += 1;
  return position === pattern.length;
}

function meetsTokens(pattern: CompiledPattern, shape: CompiledPattern): boolean {
  let reached = skipRuns(pattern, new Set([0]));
  let beforeSpace = new Set<number>();
  for (const [at, token] of shape.entries()) {
    const next = new Set<number>();
    if (token === ANY_RUN) {
      const first = Math.min(...reached);
      for (let position = first; position <= pattern.length; position += 1) next.add(position);
      if (isOwnHole(shape, at)) for (const position of beforeSpace) next.add(position);
    } else {
      for (const position of reached) {
        const wanted = pattern[position];
        if (wanted === ANY_RUN) next.add(position);
        else if (wanted === ANY_ONE || wanted === token) next.add(position + 1);
      }
    }
    beforeSpace = reached;
    reached = skipRuns(pattern, next);
    if (reached.size === 0 && beforeSpace.size === 0) return false;
  }
  return reached.has(pattern.length);
}

/** A word of nothing but a hole may vanish. */
function isOwnHole(shape: CompiledPattern, at: number): boolean {
  const end = shape[at + 1];
  return shape[at] === ANY_RUN && shape[at - 1] === 0x20 && (end === undefined || end === 0x20);
}

function skipRuns(tokens: CompiledPattern, positions: Set<number>): Set<number> {
  for (const position of positions) {
    if (tokens[position] === ANY_RUN) positions.add(position + 1);
  }
  return positions;
}

function compilePiece(piece: string): number[] {
  return [...piece].map((character) => {
    if (character === "*") return ANY_RUN;
    return character === "?" ? ANY_ONE : codePoint(character);
  });
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}
