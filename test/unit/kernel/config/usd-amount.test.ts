import fc from "fast-check";
import { expect, test } from "vitest";
import { parseUsdAmount } from "../../../../kernel/src/config/usd-amount.ts";

test("[C-051] every amount of whole 10^-12 dollars is exact, however it is written", () => {
  fc.assert(
    fc.property(
      fc.bigInt(0n, (1n << 128n) - 1n),
      fc.integer({ min: -20, max: 20 }),
      (pico, shift) => {
        const digits = pico.toString().padStart(13, "0");
        const plain = `${digits.slice(0, -12)}.${digits.slice(-12)}`;
        expect(parseUsdAmount(plain)).toBe(pico);
        expect(parseUsdAmount(`${pico}e${-12}`)).toBe(pico);
        if (shift > 0)
          expect(parseUsdAmount(`${pico}${"0".repeat(shift)}E-${12 + shift}`)).toBe(pico);
      },
    ),
  );
});

test.for([
  ["0", 0n],
  ["0e9999", 0n],
  ["0.000000000001", 1n],
  ["340282366920938463463374607.431768211455", (1n << 128n) - 1n],
  ["340282366920938463463374607.431768211456", undefined],
  ["0.0000000000001", undefined],
  ["1e9999", undefined],
  ["1e-9999", undefined],
  [".5", undefined],
  ["5.", undefined],
  ["", undefined],
  ["0x10", undefined],
  ["1".repeat(1000), undefined],
] as const)("[C-051] %s is %s", ([text, amount]) => {
  expect(parseUsdAmount(text)).toBe(amount);
});
