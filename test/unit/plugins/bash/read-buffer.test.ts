import fc from "fast-check";
import { expect, test } from "vitest";
import { ReadBuffer } from "../../../../plugins/bash/src/read-buffer.ts";

const KIB = 1024;

test("whatever is read, taken and released when, bytes come out in order and stay until they are released", () => {
  const step = fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 64 * KIB }) },
    { weight: 4, arbitrary: fc.constantFrom(1, 16 * KIB - 1, 16 * KIB, 64 * KIB) },
    { weight: 2, arbitrary: fc.constantFrom("take" as const, "release" as const) },
  );
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 300, size: "max" }), (steps) => {
      const buffer = new ReadBuffer();
      let written = 0;
      let takenBytes = 0;
      let unreleased: { bytes: Buffer; copy: Buffer }[] = [];
      for (const each of steps) {
        if (each === "take") {
          for (const bytes of buffer.take()) {
            expect(bytes.equals(pattern(takenBytes, bytes.length))).toBe(true);
            takenBytes += bytes.length;
            unreleased.push({ bytes, copy: Buffer.from(bytes) });
          }
          expect(takenBytes).toBe(written);
        } else if (each === "release") {
          expect(unreleased.every(({ bytes, copy }) => bytes.equals(copy))).toBe(true);
          unreleased = [];
          buffer.release();
        } else if (buffer.hasRoom) {
          const { region } = buffer;
          const byteLength = Math.min(each, region.length);
          pattern(written, byteLength).copy(region);
          buffer.commit(byteLength);
          written += byteLength;
        }
      }
      buffer.take();
      buffer.release();
      expect(buffer.hasRoom).toBe(true);
    }),
    { numRuns: 60 },
  );
});

/** The bytes that are read from `start` on; no stretch of the ring's length looks like the next. */
function pattern(start: number, byteLength: number): Buffer {
  return NEVER_ALIKE.subarray(start % 1_000_003, (start % 1_000_003) + byteLength);
}

const NEVER_ALIKE = Buffer.alloc(1_000_003 + 64 * KIB + 1024 * KIB);
for (let at = 0; at < NEVER_ALIKE.length; at += 1) {
  const place = at % 1_000_003;
  NEVER_ALIKE[at] = (place ^ (place >> 8) ^ (place >> 13)) & 255;
}
