import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { domainDigest, revisionOf, sha256Hex } from "../../../../kernel/src/support/digest.ts";

describe("digests", () => {
  test("[S-008] each field is preceded by its length, so none can be shifted into another", () => {
    const field = (text: string) => {
      const length = Buffer.alloc(8);
      length.writeBigUInt64BE(BigInt(Buffer.byteLength(text)));
      return Buffer.concat([length, Buffer.from(text)]);
    };
    const bytes = Buffer.concat([Buffer.from("domain"), field("é"), field("b")]);
    const expected = createHash("sha256").update(bytes).digest("hex");
    expect(domainDigest("domain", ["é", "b"])).toBe(expected);
    expect(expected).toMatch(/^[0-9a-f]{64}$/);
    expect(sha256Hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });

  test("[S-008] different fields or domains have different digests", () => {
    const fields = fc.array(fc.string(), { maxLength: 4 });
    fc.assert(
      fc.property(fields, fields, (a, b) => {
        const same = JSON.stringify(a) === JSON.stringify(b);
        expect(domainDigest("d", a) === domainDigest("d", b)).toBe(same);
      }),
    );
    expect(domainDigest("one", ["a"])).not.toBe(domainDigest("two", ["a"]));
  });

  test("[C-010] equal values have one revision, whatever the order of their members", () => {
    const revision = revisionOf("agents", { a: [1, { c: null, b: "x" }] });
    expect(revision).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(revisionOf("agents", { a: [1, { b: "x", c: null }] })).toBe(revision);
    expect(revisionOf("agents", { a: [{ b: "x", c: null }, 1] })).not.toBe(revision);
    expect(revisionOf("models", { a: [1, { b: "x", c: null }] })).not.toBe(revision);
  });
});
