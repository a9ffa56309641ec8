/** Flags that stand before the command and take a value would swallow its name; these do. */
const VALUE_FLAGS = new Set(["--data-dir", "--url", "--token"]);

/**
 * Moves options that stand before or inside the words of a command behind them, so that
 * `cookie session --json list` means `cookie session list --json` (C 7.1).
 * @param ids Command ids with `:` between their words.
 */
export function normalizeArgv(argv: readonly string[], ids: readonly string[]): string[] {
  const words: string[] = [];
  const options: string[] = [];
  let index = 0;
  for (; index < argv.length; index += 1) {
    const argument = argv[index] ?? "";
    if (argument === "--") break;
    if (argument.startsWith("-") && argument !== "-") {
      options.push(argument);
      const value = argv[index + 1];
      if (VALUE_FLAGS.has(argument) && value !== undefined) {
        options.push(value);
        index += 1;
      }
      continue;
    }
    if (!ids.some((id) => isPrefix([...words, argument], id))) break;
    words.push(argument);
    if (ids.includes(words.join(":")) && !ids.some((id) => id.startsWith(`${words.join(":")}:`))) {
      index += 1;
      break;
    }
  }
  if (words.length === 0) return [...argv];
  return [...words, ...options, ...argv.slice(index)];
}

function isPrefix(words: readonly string[], id: string): boolean {
  return `${id}:`.startsWith(`${words.join(":")}:`);
}
