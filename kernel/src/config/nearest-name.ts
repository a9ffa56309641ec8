const LONGEST_COMPARED = 64;
const SHORTEST_STEM = 4;

/** The known name that a typing slip most likely meant, or undefined when none is close (C-028). */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  if (name.length > LONGEST_COMPARED) return undefined;
  const wanted = fold(name);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = likeness(wanted, fold(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function fold(name: string): string {
  return name.toLowerCase().replaceAll("-", "_");
}

/** A left-out or added ending, such as a unit, counts as one slip. */
function likeness(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= SHORTEST_STEM && long.startsWith(short)) return short === long ? 0 : 1;
  return editDistance(a, b);
}

/** Insertions, deletions, substitutions and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const current = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min(
        (previous[j] ?? 0) + 1,
        (current[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + cost,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, (older[j - 2] ?? 0) + 1);
      }
      current.push(distance);
    }
    older = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
