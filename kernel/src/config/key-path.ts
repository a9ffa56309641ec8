/** Where a value stands: table keys and array positions from the top of the document. */
export type KeyPath = readonly (string | number)[];

const BARE_KEY = /^[A-Za-z0-9_-]+$/;
const SHOWN_CHARS = 80;

/** `a."b c".d[2]`: dotted, segments that are not bare in quotes, controls escaped. */
export function formatKeyPath(path: KeyPath): string {
  let text = "";
  for (const segment of path) {
    if (typeof segment === "number") text += `[${segment}]`;
    else text += `${text === "" ? "" : "."}${formatKey(segment)}`;
  }
  return text;
}

/** One key as it may stand in a message. */
export function formatKey(key: string): string {
  const shown = key.length > SHOWN_CHARS ? `${key.slice(0, SHOWN_CHARS)}…` : key;
  return BARE_KEY.test(shown) ? shown : JSON.stringify(shown);
}
