import type { SessionId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { SessionPresence } from "../../../../kernel/src/session/session-presence.ts";
import { TreeModes } from "../../../../kernel/src/session/tree-modes.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";

test("[S-161] a mode is that of a whole tree, and of no other", () => {
  const modes = new TreeModes();
  const tree = createId<SessionId>();
  const [root, child] = [new SessionPresence(modes, tree), new SessionPresence(modes, tree)];
  const other = new SessionPresence(modes, createId<SessionId>());
  expect([root.mode, child.mode, other.mode]).toEqual([
    "auto_approve",
    "auto_approve",
    "auto_approve",
  ]);
  root.mode = "yolo";
  expect([root.mode, child.mode, other.mode]).toEqual(["yolo", "yolo", "auto_approve"]);
  // One that is opened again, after it was evicted, finds what holds for its tree.
  expect(new SessionPresence(modes, tree).mode).toBe("yolo");
  child.mode = "auto_approve";
  expect(root.mode).toBe("auto_approve");
});
