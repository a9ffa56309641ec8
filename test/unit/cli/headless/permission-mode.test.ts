import { expect, test } from "vitest";
import { parsePermissionMode } from "../../../../cli/src/headless/permission-mode.ts";

test.for([
  ["auto-approve", "auto_approve"],
  ["auto_approve", "auto_approve"],
  ["auto-approve-n", "auto_approve_n"],
  ["auto_approve-y", "auto_approve_y"],
  ["ask", "ask"],
  ["yolo", "yolo"],
])("[C-221] %s is the mode %s", ([text, mode]) => {
  expect(parsePermissionMode(text ?? "")).toBe(mode);
});

test.for(["", "YOLO", "auto", "auto-approve-x"])("[C-221] %j is a usage error", (text) => {
  expect(() => parsePermissionMode(text)).toThrow(expect.objectContaining({ exitCode: 2 }));
});
