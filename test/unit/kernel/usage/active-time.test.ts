import fc from "fast-check";
import { expect, test } from "vitest";
import { ActiveTime } from "../../../../kernel/src/usage/active-time.ts";

const moment = fc.integer({ min: 0, max: 60 });
const span = fc.tuple(moment, moment);

/** The same by looking at every unit of time. */
function covered(spans: readonly (readonly [number, number])[]): number {
  let total = 0;
  for (let at = 0; at < 200; at += 1) {
    if (spans.some(([from, to]) => from <= at && at < to)) total += 1;
  }
  return total;
}

test("time that several runs share counts once, in whatever order they are told", () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 12 }), (spans) => {
      const active = new ActiveTime();
      for (const [from, to] of spans) active.add(from, to);
      for (const [from, to] of spans) active.add(from, to);
      expect(active.totalMs(null, 100)).toBe(covered(spans));
      const ends = active.spans.flatMap(({ fromMs, toMs }) => [fromMs, toMs]);
      expect(ends).toEqual([...ends].sort((a, b) => a - b));
    }),
  );
});

test("a run that goes on counts up to now, and never twice", () => {
  fc.assert(
    fc.property(fc.array(span, { maxLength: 12 }), moment, moment, (spans, since, now) => {
      const active = new ActiveTime();
      for (const [from, to] of spans) active.add(from, to);
      const latest = Math.max(now, ...spans.filter(([a, b]) => b > a).map(([, to]) => to));
      const expected = now > since ? covered([...spans, [since, latest]]) : covered(spans);
      expect(active.totalMs(since, now)).toBe(expected);
    }),
  );
});
