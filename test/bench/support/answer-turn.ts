import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Wire } from "./read-turn.ts";
import type { PlannedTurn } from "./scenario.ts";

type Write = (event: string | null, data: object) => void;

/** Streams one planned turn; every delta of a long answer goes out by itself. */
export async function answerTurn(
  wire: Wire,
  plan: PlannedTurn,
  response: ServerResponse,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  response.socket?.setNoDelay(true);
  const write: Write = (event, data) => {
    const head = event === null ? "" : `event: ${event}\n`;
    response.write(`${head}data: ${JSON.stringify(data)}\n\n`);
  };
  await WRITERS[wire](plan, write);
  if (wire === "chat") response.write("data: [DONE]\n\n");
  response.end();
}

let lastId = 0;
const nextId = (prefix: string): string => `${prefix}_${++lastId}`;

/** Gives the event loop a turn between deltas so that they are separate writes. */
async function eachDelta(plan: PlannedTurn, write: (delta: string) => void): Promise<void> {
  for (const delta of plan.deltas) {
    write(delta);
    if (plan.deltas.length > 1) await setImmediate();
  }
}

const WRITERS: Readonly<Record<Wire, (plan: PlannedTurn, write: Write) => Promise<void>>> = {
  async chat(plan, write) {
    const id = nextId("chat");
    const chunk = (delta: object, finish_reason: string | null = null) =>
      write(null, {
        id,
        object: "chat.completion.chunk",
        created: 1,
        model: "scripted",
        choices: [{ index: 0, delta, finish_reason }],
      });
    chunk({ role: "assistant", content: "" });
    for (const [index, call] of plan.calls.entries()) {
      const text = JSON.stringify(call.arguments);
      const entry = { index, id: nextId("call"), type: "function" };
      chunk({ tool_calls: [{ ...entry, function: { name: call.name, arguments: text } }] });
    }
    await eachDelta(plan, (content) => chunk({ content }));
    chunk({}, plan.calls.length > 0 ? "tool_calls" : "stop");
    const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
    write(null, { id, object: "chat.completion.chunk", created: 1, choices: [], usage });
  },

  async responses(plan, write) {
    const send = (type: string, data: object) => write(type, { type, ...data });
    const response = { id: nextId("resp"), object: "response", created_at: 1, model: "scripted" };
    send("response.created", { response: { ...response, status: "in_progress", output: [] } });
    const output: object[] = [];
    for (const [output_index, call] of plan.calls.entries()) {
      const item = {
        type: "function_call",
        id: nextId("fc"),
        call_id: nextId("call"),
        name: call.name,
        arguments: JSON.stringify(call.arguments),
        status: "completed",
      };
      send("response.output_item.added", { output_index, item: { ...item, arguments: "" } });
      send("response.output_item.done", { output_index, item });
      output.push(item);
    }
    if (plan.calls.length === 0) {
      const content = [{ type: "output_text", text: plan.deltas.join(""), annotations: [] }];
      const item = { type: "message", id: nextId("msg"), role: "assistant", content };
      const place = { output_index: 0, item_id: item.id, content_index: 0 };
      send("response.output_item.added", { output_index: 0, item: { ...item, content: [] } });
      await eachDelta(plan, (delta) => send("response.output_text.delta", { ...place, delta }));
      send("response.output_item.done", { output_index: 0, item });
      output.push(item);
    }
    const usage = { input_tokens: 100, output_tokens: 10, total_tokens: 110 };
    send("response.completed", { response: { ...response, status: "completed", output, usage } });
  },

  async anthropic(plan, write) {
    const send = (type: string, data: object) => write(type, { type, ...data });
    const usage = { input_tokens: 100, output_tokens: 10 };
    const message = { id: nextId("msg"), type: "message", role: "assistant", model: "scripted" };
    send("message_start", { message: { ...message, content: [], stop_reason: null, usage } });
    for (const [index, call] of plan.calls.entries()) {
      const block = { type: "tool_use", id: nextId("toolu"), name: call.name, input: {} };
      const partial_json = JSON.stringify(call.arguments);
      send("content_block_start", { index, content_block: block });
      send("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } });
      send("content_block_stop", { index });
    }
    if (plan.calls.length === 0) {
      send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
      await eachDelta(plan, (text) =>
        send("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
      );
      send("content_block_stop", { index: 0 });
    }
    const stop_reason = plan.calls.length > 0 ? "tool_use" : "end_turn";
    send("message_delta", { delta: { stop_reason, stop_sequence: null }, usage });
    send("message_stop", {});
  },
};
