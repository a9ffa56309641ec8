import fc from "fast-check";
import { expect, test } from "vitest";
import { nearestName } from "../../../../kernel/src/config/nearest-name.ts";

const KNOWN = ["max_lines", "max_bytes", "timeout_ms", "enabled", "args"];

test.for([
  ["max_line", "max_lines"],
  ["max-lines", "max_lines"],
  ["MaxLines", "max_lines"],
  ["timeuot_ms", "timeout_ms"],
  ["timeout", "timeout_ms"],
  ["enable", "enabled"],
  ["arg", "args"],
  ["arsg", "args"],
  ["colour", undefined],
  ["x", undefined],
  ["x".repeat(10_000), undefined],
] as const)("[C-028] for %s the nearest name is %s", ([name, nearest]) => {
  expect(nearestName(name, KNOWN)).toBe(nearest);
});

test("[C-028] a name with one slip is found whatever the slip", () => {
  const name = fc.constantFrom(...KNOWN.filter((known) => known.length > 5));
  fc.assert(
    fc.property(name, fc.nat(), fc.constantFrom("drop", "double", "swap"), (known, at, slip) => {
      const index = at % (known.length - 1);
      const [head, one, two] = [known.slice(0, index), known[index] ?? "", known[index + 1] ?? ""];
      const tail = known.slice(index + 2);
      const typed = {
        drop: head + two + tail,
        double: head + one + one + two + tail,
        swap: head + two + one + tail,
      }[slip];
      expect(nearestName(typed, KNOWN)).toBe(known);
    }),
  );
});
