/** Outside of quotes: nothing that a shell would read as anything but itself, in any place of a word. */
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+/;
const SINGLE_QUOTED = /^'([^'\p{Cc}]*)'/u;
const DOUBLE_QUOTED = /^"([^"$`\\!\p{Cc}]*)"/u;

/**
 * The words of one simple command, exactly as bash would pass them, or why there are none. Whatever a shell would
 * expand, join, redirect or run is refused and not interpreted: `$`, globs, `~`, `;`, `|`, `&`, `>`, substitutions,
 * backslashes, line breaks and everything else that is not listed here.
 */
export function splitWords(command: string): readonly string[] | { readonly refused: string } {
  const words: string[] = [];
  let rest = command.replace(/^ +| +$/g, "");
  while (rest !== "") {
    let word = "";
    let read = 0;
    for (;;) {
      const piece = PLAIN.exec(rest) ?? SINGLE_QUOTED.exec(rest) ?? DOUBLE_QUOTED.exec(rest);
      if (piece === null) break;
      word += piece[1] ?? piece[0];
      read += piece[0].length;
      rest = rest.slice(piece[0].length);
    }
    const gap = /^ */.exec(rest)?.[0].length ?? 0;
    if (read === 0 || (rest !== "" && gap === 0)) {
      return { refused: JSON.stringify(String.fromCodePoint(rest.codePointAt(0) ?? 0)) };
    }
    words.push(word);
    rest = rest.slice(gap);
  }
  return words.length === 0 ? { refused: "an empty command" } : words;
}
