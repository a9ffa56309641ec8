import { VisibleBranch } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";

interface Marker {
  readonly seq: number;
  readonly through: number;
}

/** Markers in the order of a log, each going back to some event before it. */
const markers = fc
  .array(fc.record({ gap: fc.integer({ min: 1, max: 6 }), back: fc.nat(40) }), { maxLength: 12 })
  .map((steps) => {
    const found: Marker[] = [];
    let seq = 1;
    for (const { gap, back } of steps) {
      seq += gap;
      found.push({ seq, through: Math.max(1, seq - 1 - back) });
    }
    return found;
  });

test("[S-061] an event counts exactly when no later marker goes back behind it", () => {
  fc.assert(
    fc.property(markers, (found) => {
      const branch = new VisibleBranch();
      for (const { seq, through } of found) branch.revert(through, seq);
      const tip = (found.at(-1)?.seq ?? 1) + 3;
      for (let seq = 1; seq <= tip; seq += 1) {
        const later = found.filter((marker) => marker.seq > seq);
        const ceiling = Math.min(Number.POSITIVE_INFINITY, ...later.map(({ through }) => through));
        expect(branch.isVisible(seq), `event ${seq}`).toBe(seq <= ceiling);
      }
      expect(branch.isWhole).toBe(found.length === 0);
    }),
  );
});
