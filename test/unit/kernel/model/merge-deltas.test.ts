import fc from "fast-check";
import { expect, test } from "vitest";
import { DeltaMerger } from "../../../../kernel/src/model/merge-deltas.ts";

const chat = (delta: object, rest: object = {}) =>
  `data: ${JSON.stringify({ id: "c", created: 7, choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`;
const block = (delta: object, index = 0) =>
  `event: content_block_delta\ndata: ${JSON.stringify({ type: "content_block_delta", index, delta })}\n\n`;
const response = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const spaced = (event: string) => event.replaceAll('":', '": ').replaceAll(',"', ', "');

/** A piece of a few events is not worth looking through. */
const pings = ": ping\n\n".repeat(6);

function merge(events: string): string {
  const piece = new DeltaMerger().merge(Buffer.from(pings + events));
  return Buffer.from(piece).toString().slice(pings.length);
}

test.for([
  ["chat text", chat({ content: "a" }) + chat({ content: "b" }), chat({ content: "ab" })],
  [
    "chat text with spaces",
    spaced(chat({ content: "a" })) + spaced(chat({ content: "b" })),
    spaced(chat({ content: "ab" })),
  ],
  [
    "chat text beside empty members",
    chat({ role: "assistant", content: "a", tool_calls: null }) +
      chat({ role: "assistant", content: "b", tool_calls: null }),
    chat({ role: "assistant", content: "ab", tool_calls: null }),
  ],
  [
    "chat reasoning beside empty text",
    chat({ content: "", reasoning: "a" }) + chat({ content: "", reasoning: "b" }),
    chat({ content: "", reasoning: "ab" }),
  ],
  [
    "chat text of two seconds",
    chat({ content: "a" }) + chat({ content: "b" }, { created: 8 }),
    chat({ content: "ab" }),
  ],
  [
    "chat arguments",
    chat({ tool_calls: [{ index: 1, function: { arguments: '{"a' } }] }) +
      chat({ tool_calls: [{ index: 1, function: { arguments: '":1}' } }] }),
    chat({ tool_calls: [{ index: 1, function: { arguments: '{"a":1}' } }] }),
  ],
  [
    "a text block",
    block({ type: "text_delta", text: "a" }) + block({ type: "text_delta", text: "b" }),
    block({ type: "text_delta", text: "ab" }),
  ],
  [
    "a thinking block",
    block({ type: "thinking_delta", thinking: "a" }) +
      block({ type: "thinking_delta", thinking: "b" }),
    block({ type: "thinking_delta", thinking: "ab" }),
  ],
  [
    "a response's text, whatever its counters",
    response("response.output_text.delta", { sequence_number: 1, delta: "a", obfuscation: "x" }) +
      response("response.output_text.delta", { sequence_number: 2, delta: "b", obfuscation: "yz" }),
    response("response.output_text.delta", { sequence_number: 1, delta: "ab", obfuscation: "x" }),
  ],
])("neighbouring deltas become one: %s", ([, events, merged]) => {
  expect(merge(events ?? "")).toBe(merged);
});

test.for([
  ["text and reasoning", chat({ content: "a" }) + chat({ reasoning_content: "b" })],
  [
    "two blocks",
    block({ type: "text_delta", text: "a" }) + block({ type: "text_delta", text: "b" }, 1),
  ],
  ["another response", chat({ content: "a" }) + chat({ content: "b" }, { id: "d" })],
  ["usage", chat({ content: "a" }) + chat({ content: "b" }, { usage: { prompt_tokens: 1 } })],
  [
    "a call that is named",
    chat({ tool_calls: [{ index: 0, id: "x", function: { name: "f", arguments: "" } }] }) +
      chat({ tool_calls: [{ index: 0, id: "x", function: { name: "f", arguments: "" } }] }),
  ],
  [
    "arguments of two calls",
    chat({ tool_calls: [{ index: 0, function: { arguments: "a" } }] }) +
      chat({ tool_calls: [{ index: 1, function: { arguments: "b" } }] }),
  ],
  [
    "text beside a call",
    chat({ content: "a", tool_calls: [{ index: 0 }] }) +
      chat({ content: "b", tool_calls: [{ index: 0 }] }),
  ],
  ["no JSON", "data: [DONE]\n\ndata: [DONE]\n\n"],
  ["several data lines", 'data: {"delta":{"content":"a"}\ndata: }\n\n'.repeat(2)],
  ["comments", ": ping\n\n: ping\n\n"],
  ["an unended text", 'data: {"delta":{"content":"a\n\n'.repeat(2)],
])("everything else passes as it came: %s", ([, events]) => {
  expect(merge(events ?? "")).toBe(events);
});

const anyDelta = fc.oneof(
  fc.string({ unit: "binary" }).map((content) => chat({ content })),
  fc.string().map((content) => spaced(chat({ content }))),
  fc.string({ unit: "binary" }).map((reasoning) => chat({ reasoning })),
  fc.constantFrom(": ping\n\n", "data: [DONE]\n\n", "\n", chat({}, { usage: {} })),
);

test("however a stream is cut, its texts stay the same", () => {
  fc.assert(
    fc.property(
      fc.array(anyDelta, { maxLength: 40 }),
      fc.array(fc.nat({ max: 5000 }), { maxLength: 6 }),
      (events, cuts) => {
        const bytes = Buffer.from(events.join(""));
        const merger = new DeltaMerger();
        const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length];
        places.sort((a, b) => a - b);
        const pieces = places
          .slice(1)
          .map((end, index) => merger.merge(bytes.subarray(places[index], end)));
        const merged = Buffer.concat(pieces).toString();
        expect(textOf(merged)).toBe(textOf(bytes.toString()));
        expect(merged.length).toBeLessThanOrEqual(bytes.toString().length);
      },
    ),
  );
});

/** Every text of a stream with its kind, neighbours joined. */
function textOf(stream: string): string {
  let kind = "";
  let all = "";
  for (const line of stream.split("\n").filter((each) => each.startsWith("data: {"))) {
    const { choices } = JSON.parse(line.slice(6)) as { choices: { delta: object }[] };
    for (const [name, text] of Object.entries(choices[0]?.delta ?? {})) {
      if (name !== kind) all += `\n${name}:`;
      kind = name;
      all += text;
    }
  }
  return all;
}
