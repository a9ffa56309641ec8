import type { AssistantPart, HookMessage } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { HistoryMessage } from "../../../../kernel/src/model/bound-model.ts";
import {
  fromHookMessages,
  fromHookParts,
  toHookMessages,
  toHookParts,
} from "../../../../kernel/src/run/hook-messages.ts";

const SELECTION = { model: "custom.test/one", variant: null };
const MODEL = { selection: SELECTION, toolCalling: true };

const text = fc.string();
const spoken = text.map((words) => `${words}.`);
const metadata = fc.option(fc.constant({ vendor: { signature: "s" } }), { nil: undefined });
const part = (id: string): fc.Arbitrary<AssistantPart> =>
  fc.oneof(
    fc.record({ type: fc.constant("text" as const), text, metadata }),
    fc.record({ type: fc.constant("reasoning" as const), text, metadata }),
    fc.record({
      type: fc.constant("tool_call" as const),
      id: fc.constant(id),
      provider_item_id: fc.option(fc.constant(`item ${id}`)),
      name: fc.constant("bash"),
      input: fc.record({ command: text }),
      raw_input: fc.constant(null),
      metadata,
    }),
  );
/** A conversation as the kernel keeps it: every call is answered, and a person speaks last. */
const history: fc.Arbitrary<HistoryMessage[]> = fc
  .array(fc.tuple(spoken, fc.array(fc.nat(), { maxLength: 3 })), { maxLength: 4 })
  .chain((turns) =>
    fc.tuple(
      ...turns.map(([said, seeds], turn) =>
        fc.tuple(
          fc.constant(said),
          fc.tuple(...seeds.map((_, index) => part(`call ${turn} ${index}`))),
          fc.option(fc.constant({ exit: 1 })),
        ),
      ),
    ),
  )
  .map((turns) => [
    ...turns.flatMap(([said, content, details]): HistoryMessage[] => {
      const results = content.flatMap((each) =>
        each.type === "tool_call"
          ? [{ callId: each.id, name: each.name, output: said, isError: false, details }]
          : [],
      );
      return [
        { role: "user", text: said },
        { role: "assistant", content, model: { model: "custom.other/two", variant: null } },
        ...(results.length === 0 ? [] : [{ role: "tool" as const, results }]),
      ];
    }),
    { role: "user", text: "last" },
  ]);

describe("what hooks hand back", () => {
  test("[E-168] unchanged messages are the very objects that they were made of", () => {
    fc.assert(
      fc.property(fc.oneof(fc.constant(""), spoken), history, (system, before) => {
        const shown = JSON.parse(JSON.stringify(toHookMessages({ system, history: before })));
        const after = fromHookMessages(shown as HookMessage[], { system, history: before }, MODEL);
        if ("problem" in after) throw new Error(after.problem);
        expect(after.system).toBe(system);
        expect(after.history).toHaveLength(before.length);
        // Equal ones may stand for each other.
        for (const [index, message] of after.history.entries()) {
          expect(before).toContain(message);
          expect(toHookMessages({ system, history: [message] })).toEqual(
            toHookMessages({ system, history: [before[index] as HistoryMessage] }),
          );
        }
      }),
    );
  });

  test("[E-167] a changed part loses the provider's data, the parts beside it keep theirs", () => {
    const before: AssistantPart[] = [
      { type: "reasoning", text: "hm", metadata: { vendor: { signature: "s" } } },
      { type: "text", text: "a", metadata: { vendor: { id: "1" } } },
    ];
    const [reasoning] = toHookParts(before);
    if (reasoning === undefined) throw new Error("nothing was shown");
    const after = fromHookParts([reasoning, { type: "text", text: "b" }], before);
    expect(after[0]).toBe(before[0]);
    expect(after[1]).toEqual({ type: "text", text: "b" });
  });

  test("[E-167] a changed result keeps the media that hooks are not shown", () => {
    const image = {
      mime_type: "image/png",
      filename: null,
      byte_length: 1,
      sha256: "0".repeat(64),
      reference: "artifact://sha256/0",
    };
    const call = { type: "tool_call" as const, id: "a", provider_item_id: null, raw_input: null };
    const before: HistoryMessage[] = [
      { role: "assistant", content: [{ ...call, name: "read", input: {} }], model: SELECTION },
      {
        role: "tool",
        results: [
          {
            callId: "a",
            name: "read",
            output: "x",
            isError: false,
            details: null,
            attachments: [image],
          },
        ],
      },
    ];
    const shown = toHookMessages({ system: "", history: before });
    expect(JSON.stringify(shown)).not.toContain("image/png");
    const [asked, answer] = shown;
    if (asked === undefined || answer?.role !== "tool") throw new Error("no result was shown");
    const changed = {
      ...answer,
      content: answer.content.map((each) => ({ ...each, output: "y" })),
    };
    const after = fromHookMessages([asked, changed], { system: "", history: before }, MODEL);
    expect(after).toMatchObject({
      history: [before[0], { results: [{ output: "y", attachments: [image] }] }],
    });
  });

  const user: HookMessage = { role: "user", content: "go" };
  const asks = (...ids: string[]): HookMessage => ({
    role: "assistant",
    content: ids.map((id) => ({ type: "tool_call", id, name: "bash", input: {} })),
  });
  const answers = (...ids: string[]): HookMessage => ({
    role: "tool",
    content: ids.map((id) => ({ call_id: id, name: "bash", output: "", is_error: false })),
  });

  test.for<[string, HookMessage[]]>([
    ["an answer without its call", [user, answers("a")]],
    ["an answer to a call further up", [user, asks("a"), user, answers("a")]],
    ["two answers to one call", [user, asks("a"), answers("a", "a")]],
    ["two calls of one id", [user, asks("a", "a"), answers("a")]],
    ["an id used again", [user, asks("a"), answers("a"), asks("a"), answers("a")]],
    ["a second system message", [user, { role: "system", content: "s" }, user]],
    ["the model's own words last", [user, asks()]],
    ["nothing but a system message", [{ role: "system", content: "s" }]],
  ])("[E-168] %s is refused", ([, messages]) => {
    expect(fromHookMessages(messages, { system: "", history: [] }, MODEL)).toHaveProperty(
      "problem",
    );
  });

  test("[E-168] calls are refused for a model that takes none", () => {
    const messages = [user, asks("a"), answers("a")];
    const without = { ...MODEL, toolCalling: false };
    expect(fromHookMessages(messages, { system: "", history: [] }, MODEL)).not.toHaveProperty(
      "problem",
    );
    expect(fromHookMessages(messages, { system: "", history: [] }, without)).toHaveProperty(
      "problem",
    );
  });
});
