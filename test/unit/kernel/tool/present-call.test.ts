import { describe, expect, test } from "vitest";
import { argumentText, presentCall } from "../../../../kernel/src/tool/present-call.ts";

describe("presentation of a call", () => {
  test.for([
    ["curl -H 'Authorization: x'", "<redacted>"],
    ["MY_API_KEY=1 run", "<redacted>"],
    ["cat password.txt", "<redacted>"],
    ["two\nlines\u0007", "two lines "],
    ["é".repeat(300), "é".repeat(256)],
  ] as const)("[T-040] %j is shown as %j", ([argument, shown]) => {
    expect(presentCall("bash", argument)).toEqual({ title: "bash", primary_argument: shown });
  });

  test("an argument is a string as it stands, anything else compact JSON, absence nothing", () => {
    const args = { text: "a b", list: [1, { b: 2 }], none: null };
    expect(
      ["text", "list", "none", "absent", "toString"].map((name) => argumentText(args, name)),
    ).toEqual(["a b", '[1,{"b":2}]', null, null, null]);
  });
});
