import { CookieError, type HookName, type MediaPlacement } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { publicArtifactUri } from "../../../../kernel/src/artifact/artifact-uri.ts";
import { HookChain } from "../../../../kernel/src/plugin/hook-chain.ts";
import { pngOf } from "../../../support/media-files.ts";
import { declareDynamic, declareTool, openRoom, preparedAs, SESSION } from "./dispatch-fixture.ts";

/** One required plugin that gives its answers at one hook, one after the other. */
function chainOf(hook: HookName, ...answers: unknown[]): HookChain {
  return new HookChain(
    {
      interceptors: (asked) => (asked === hook ? [{ plugin: "guard", required: true }] : []),
      intercept: async () => {
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer as never;
      },
    },
    { note: () => undefined },
  );
}

describe("tokens of a call that is looked at", () => {
  test.for([
    ["allows it", { action: "allow" }, ["a"], ["token 1"], []],
    [
      "changes it",
      { action: "allow", modified_arguments: { value: "y" } },
      ["a", "a"],
      ["token 2"],
      ["token 1"],
    ],
    [
      "leads it elsewhere",
      { action: "allow", modified_arguments: { value: "y" } },
      ["a", "b"],
      [],
      ["token 1", "token 2"],
    ],
    ["blocks it", { action: "block" }, ["a"], [], ["token 1"]],
    ["fails", new CookieError("timeout", "late"), ["a"], [], ["token 1"]],
  ] as const)(
    "[E-084] [E-164] where a plugin %s, each is used or given back",
    async ([, answer, labels, used, returned]) => {
      const room = openRoom([declareDynamic("edit")], {
        hooks: chainOf("tool_before_call", answer),
      });
      room.plugins.prepared = async () => {
        const count = room.plugins.prepares.length;
        return preparedAs(labels[count - 1] ?? "", { prepared: `token ${count}` });
      };
      await room.dispatch([["edit", { value: "x" }]]);
      expect(room.plugins.calls.map(({ params }) => params.prepared)).toEqual(used);
      expect([...room.plugins.discarded].sort()).toEqual(returned);
    },
  );
});

test.for(["tool_result", "user_turn"] as const)(
  "[E-204] a guard that fails withholds output, metadata and media for the %s",
  async (placement: MediaPlacement) => {
    const late = new CookieError("timeout", "late");
    const room = openRoom([declareTool({ name: "show" })], {
      hooks: chainOf("tool_after_result", late),
    });
    const { sha256 } = await room.stages.artifacts.put(SESSION, pngOf(2, 2));
    const attachments = [{ artifact: publicArtifactUri(sha256) }];
    room.plugins.answer = async () => ({ content: "secret", metadata: { secret: 1 }, attachments });
    const kind = {
      mimeTypes: ["image/png"],
      maxBytes: 1024,
      maxCount: 2,
      delivery: { placement, maxBytes: 1024 },
    };
    const media = () => ({ model: "m", family: "f", kinds: new Map([["image" as const, kind]]) });
    const nobody = () => {
      throw new Error("nobody asks");
    };
    const session = { media, mayRead: () => false, info: nobody };
    const [end] = await room.dispatch([["show", { value: "x" }]], { session });
    expect(end).toMatchObject({
      outcome: "failed",
      error: { code: "operation_blocked" },
      result: { output: "", metadata: {}, attachments: [] },
    });
    expect(end?.result?.additional_messages).toBeUndefined();
  },
);
