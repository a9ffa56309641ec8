/** About how many bytes a JSON value takes in memory and on a wire; never walks into text, so it is cheap. */
export function roughJsonSize(value: unknown): number {
  let size = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    size += 8;
    if (typeof next === "string") size += next.length;
    else if (typeof next === "object" && next !== null) {
      for (const key in next) {
        size += key.length;
        open.push((next as Record<string, unknown>)[key]);
      }
    }
  }
  return size;
}
