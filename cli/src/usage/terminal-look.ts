/** What the place that is printed to can show. */
export interface TerminalLook {
  readonly columns: number;
  readonly colors: boolean;
  /** Characters beyond ASCII. */
  readonly blocks: boolean;
}

const PIPE_COLUMNS = 80;
const FEWEST_COLUMNS = 40;
const MOST_COLUMNS = 200;

export function lookOf(
  out: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
): TerminalLook {
  const columns = out.isTTY === true ? out.columns || PIPE_COLUMNS : PIPE_COLUMNS;
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return {
    columns: Math.min(Math.max(columns, FEWEST_COLUMNS), MOST_COLUMNS),
    colors: out.isTTY === true && !env["NO_COLOR"] && env["TERM"] !== "dumb",
    blocks: /utf-?8/i.test(locale),
  };
}
