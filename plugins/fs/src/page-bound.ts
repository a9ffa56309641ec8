import { ToolError } from "@cookie-agent/sdk/plugin";

/** Rendered lines of one page; the tags around them and the path stay below the 2 MiB of a result. */
export const MAX_PAGE_BYTES = 2 * 1024 * 1024 - 16 * 1024;

/** What the text may take once it is a JSON string, so that its frame stays below 4 MiB. */
const MAX_ENCODED_BYTES = 3.75 * 1024 * 1024;
/** A control character becomes six bytes in JSON, and nothing grows more. */
const MAX_GROWTH = 6;

/** How many of the leading pieces fit one frame together, counted as JSON. */
export function fitsPage(pieces: readonly string[]): number {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length * MAX_GROWTH <= MAX_ENCODED_BYTES) return pieces.length;
  let encoded = 0;
  for (const [index, piece] of pieces.entries()) {
    encoded += Buffer.byteLength(JSON.stringify(piece)) - 2;
    if (encoded > MAX_ENCODED_BYTES) return index;
  }
  return pieces.length;
}

export function pageTooLarge(limit: number): ToolError {
  return new ToolError(
    "resource_limit",
    `the page is larger than 2 MiB; ask for at most limit ${limit}`,
    { data: { limit } },
  );
}
