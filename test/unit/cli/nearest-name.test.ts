import { expect, test } from "vitest";
import { nearestName } from "../../../cli/src/nearest-name.ts";

const KNOWN = ["model", "output", "output-file", "session list", "session show"];

test.for([
  ["modle", "model"],
  ["mdl", undefined],
  ["outpt", "output"],
  ["outputfile", "output-file"],
  ["session lst", "session list"],
  ["frobnicate", undefined],
  ["x".repeat(100), undefined],
])("%s most likely means %s", ([name, near]) => {
  expect(nearestName(name ?? "", KNOWN)).toBe(near);
});
