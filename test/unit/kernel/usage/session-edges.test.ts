import type { RunId, SessionId, SessionOrigin, ToolCallId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { subtreeOf } from "../../../../kernel/src/session/session-edges.ts";

const id = (letter: string) => letter as SessionId;

/** `b:a` is a session whose parent is `a`; `b:a@x` one that names another root. */
function tree(...words: string[]) {
  return words.map((word) => {
    const [sessionId = "", rest] = word.split(":");
    const [parent = "", root = "r"] = (rest ?? "").split("@");
    const origin: SessionOrigin =
      rest === undefined
        ? { type: "root" }
        : {
            type: "delegated",
            root_session_id: id(root),
            parent_session_id: id(parent),
            parent_run_id: "run" as RunId,
            parent_tool_call_id: "call" as ToolCallId,
            invocation_id: "i",
            depth: 1,
          };
    return { sessionId: id(sessionId), rootId: id("r"), origin };
  });
}

test.for([
  [["r"], "r", "r"],
  [["r", "a:r", "b:a", "c:r"], "r", "rabc"],
  [["r", "b:a", "a:r", "c:r"], "a", "ba"],
  [["r", "a:r"], "x", ""],
] as const)("of %j those at or below %s are %s", async ([words, top, expected]) => {
  const members = await subtreeOf(tree(...words), id(top), ({ origin }) => origin);
  expect(members.map(({ sessionId }) => sessionId).join("")).toBe(expected);
});

test.for([
  ["a circle", ["r", "a:b", "b:a"]],
  ["a session that is its own parent", ["r", "a:a"]],
  ["a parent outside the tree", ["r", "a:x"]],
  ["another tree's child", ["r", "a:r@x"]],
  ["a root among the children", ["r", "a"]],
  ["a child in the place of the root", ["r:a", "a:r"]],
] as const)("[S-237] %s is a corrupt delegation", async ([, words]) => {
  const summing = subtreeOf(tree(...words), id("r"), ({ origin }) => origin);
  await expect(summing).rejects.toMatchObject({ code: "corrupt_delegation" });
});
