import fc from "fast-check";
import { expect, test } from "vitest";
import { TextMeter } from "../../../../kernel/src/artifact/text-meter.ts";

test("bytes and lines are counted the same however the text is cut and wherever it lies in memory", () => {
  const byte = fc.oneof(
    fc.constant(0x0a),
    fc.constantFrom(0x09, 0x0b, 0x8a, 0xff, 0x00),
    fc.nat(255),
  );
  fc.assert(
    fc.property(fc.array(fc.array(byte)), fc.nat(7), (pieces, offset) => {
      const meter = new TextMeter();
      for (const piece of pieces) {
        const lying = new Uint8Array(offset + piece.length);
        lying.set(piece, offset);
        meter.add(lying.subarray(offset));
      }
      const all = pieces.flat();
      const newlines = all.filter((each) => each === 0x0a).length;
      expect(meter.byteLength).toBe(all.length);
      expect(meter.lineCount).toBe(newlines + (all.length > 0 && all.at(-1) !== 0x0a ? 1 : 0));
    }),
  );
});

test.for(["\n", "a\n", "\u008a\v\n\t", `${"x".repeat(80)}\n`, "x"])(
  "long text of lines like %j is counted line by line",
  (unit) => {
    const text = Buffer.from(unit.repeat(5000), "latin1");
    const meter = new TextMeter();
    for (const start of [0, 1, 2, 3]) meter.add(text.subarray(start));
    const newlines = [0, 1, 2, 3].map(
      (start) => text.subarray(start).filter((b) => b === 10).length,
    );
    const last = unit.endsWith("\n") ? 0 : 1;
    expect(meter.lineCount).toBe(newlines.reduce((sum, each) => sum + each) + last);
  },
);

test("a run of newlines is counted whatever its length, its end and its place in memory", () => {
  const endings = ["", "a", "ab", "abc", "abcd", "abcde"];
  for (let offset = 0; offset < 4; offset += 1) {
    for (let newlines = 0; newlines < 80; newlines += 1) {
      for (const ending of endings) {
        const text = `${" ".repeat(offset)}${"\n".repeat(newlines)}${ending}`;
        const meter = new TextMeter();
        meter.add(new Uint8Array(Buffer.from(text)).subarray(offset));
        expect(meter.lineCount).toBe(newlines + (ending === "" ? 0 : 1));
      }
    }
  }
});
