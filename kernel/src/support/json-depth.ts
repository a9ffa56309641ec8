/** What is nested deeper than this is not written, hashed or sent: all of that recurses. */
export const MAX_JSON_DEPTH = 128;

/** True when arrays and objects are nested in each other more often than `max`; itself takes no stack. */
export function isNestedDeeper(value: unknown, max: number): boolean {
  let level = [value].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > max) return true;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
