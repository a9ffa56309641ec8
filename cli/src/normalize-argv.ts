export interface NormalizedArgv {
  /** Words that name a command or the beginning of one. */
  readonly words: readonly string[];
  /** Everything else, in order: the command's own arguments. */
  readonly rest: readonly string[];
}

/**
 * Parts the words of a command from its arguments. Options may stand before or between the words, so that
 * `cookie session --json list` is `cookie session list --json` (C 7.1).
 * @param ids Command ids, their words separated by `:`.
 * @param valueOptions Option spellings that take the next argument as their value.
 */
export function normalizeArgv(
  argv: readonly string[],
  ids: readonly string[],
  valueOptions: ReadonlySet<string>,
): NormalizedArgv {
  const words: string[] = [];
  const options: string[] = [];
  let index = 0;
  for (; index < argv.length; index += 1) {
    const argument = argv[index] ?? "";
    if (argument === "--" || ids.includes(words.join(":"))) break;
    if (argument.startsWith("-") && argument !== "-") {
      options.push(argument);
      const value = argv[index + 1];
      if (valueOptions.has(argument) && value !== undefined) {
        options.push(value);
        index += 1;
      }
      continue;
    }
    if (!ids.some((id) => isPrefix([...words, argument], id))) break;
    words.push(argument);
  }
  return { words, rest: [...options, ...argv.slice(index)] };
}

function isPrefix(words: readonly string[], id: string): boolean {
  return `${id}:`.startsWith(`${words.join(":")}:`);
}
