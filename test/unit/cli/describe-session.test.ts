import type { EventPayload } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { describeEvent } from "../../../cli/src/describe-session.ts";

test.for<[EventPayload, string | null]>([
  [
    { type: "plugin_event_added", plugin: "acme", name: "build\u001b[2J done", payload: { a: 1 } },
    "plugin     acme published build [2J done",
  ],
  [
    {
      type: "plugin_diagnostic",
      plugin: "acme",
      kind: "event_drop",
      message: "the plugin's event queue is full: chunk events dropped",
      count: 12,
    },
    "plugin     acme: event_drop, 12 times: the plugin's event queue is full: chunk events dropped",
  ],
  [
    { type: "user_input_transformed", original_input: "Push it.", input: "Do not push." },
    "plugin     changed what was said: Push it.",
  ],
  [
    { type: "message_injected", role: "system", input: "Be kind." },
    "plugin     added a system message: Be kind.",
  ],
  [{ type: "user_input_applied", user_input_seq: 3 }, null],
])("of %o a reader of the record sees %o", ([payload, line]) => {
  expect(describeEvent(payload)).toBe(line);
});
