import fc from "fast-check";
import { expect, test } from "vitest";
import { SecretText, secretIn } from "../../../../sdk/src/rpc/secret-text.ts";

const ask = (params: object) => ({ jsonrpc: "2.0", id: 1, method: "run.tool_stdin", params });

test("[D-086] [D-087] any bytes become their base64 in the frame, and neither they nor the text outlive it", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.string(), (bytes, other) => {
      const data = Buffer.from(bytes);
      const expected = data.toString("base64");
      const secret = SecretText.base64("data", data);
      expect(data).toEqual(Buffer.alloc(bytes.length));
      const found = secretIn(ask({ other, data: secret, eof: true }));
      if (found === null) throw new Error("not found");
      const frame = found.secret.frameOf(found.message);
      expect(JSON.parse(frame.toString())).toEqual(ask({ other, data: expected, eof: true }));
      secret.wipe();
      expect(secret.toJSON()).toBe("\0".repeat(expected.length));
    }),
  );
});

test("a message without one is left alone", () => {
  expect(secretIn(ask({ data: "plain" }))).toBeNull();
  expect(secretIn({ jsonrpc: "2.0" })).toBeNull();
});
