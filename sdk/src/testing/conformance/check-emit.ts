import { randomUUID } from "node:crypto";
import { EMIT_LIMITS } from "../../protocol/limits.ts";
import { EventName, utf8Length } from "../../protocol/scalars.ts";
import { excerpt } from "../answer.ts";
import { type Bench, SESSION, type Started } from "./bench.ts";
import type { Check } from "./check.ts";
import { fail, skip } from "./verdict.ts";

export const checkEmit: Check = {
  id: "C-22",
  title: "emit: contexts used once and for their own session, bounded payloads",
  ids: ["E-146", "E-148", "E-149", "E-151"],
  async run(bench) {
    const { capabilities = {} } = bench.options.subject.manifest ?? {};
    const publishes =
      capabilities.publish_bus === true || capabilities.publish_session_events === true;
    if (!publishes) skip("the plugin does not declare that it publishes");
    const started = await bench.start(await bench.folder());
    const contexts = new Set<string>();
    deliver(bench, started, contexts);
    await bench.barrier(started.peer, "events");
    const emits = () => started.peer.driver.frames.filter(({ method }) => method === "plugin/emit");
    await started.peer.driver.until(() => emits().length > 0, 1000);
    const used = new Set<unknown>();
    for (const { params } of emits()) {
      const { session_id: session, context_id: context, name, payload } = params;
      if (typeof context !== "string" || !contexts.has(context)) {
        fail(
          `emitted with the context ${excerpt(String(context))}, which it was not given`,
          "use the context_id of an event that was delivered to it",
        );
      }
      if (used.has(context)) {
        fail("emitted twice with one context", "emit once for each event that it is given");
      }
      used.add(context);
      if (session !== SESSION.session_id) {
        fail("emitted for another session than its context is of", "give that session_id back");
      }
      if (!EventName.safeParse(name).success) {
        fail(
          "emitted a wrong name",
          `use 1 to ${EMIT_LIMITS.nameCharacters} characters without controls`,
        );
      }
      if (utf8Length(JSON.stringify(payload ?? null)) > EMIT_LIMITS.payloadBytes) {
        fail("emitted a payload over 256 KiB", "send less");
      }
    }
    if (used.size === 0) skip("it emitted nothing for the events that it was given");
  },
};

/** A small life of a run, as far as the plugin subscribes. */
function deliver({ options }: Bench, { peer }: Started, contexts: Set<string>): void {
  const { subscribe_events: events, subscribe_bus: bus } =
    options.subject.manifest?.capabilities ?? {};
  const give = (method: string, params: Record<string, unknown>) => {
    const context = randomUUID();
    contexts.add(context);
    peer.driver.notify(method, {
      session_id: SESSION.session_id,
      context_id: context,
      ...params,
    });
  };
  const wants = (type: string) =>
    events === true || (Array.isArray(events) && events.includes(type));
  const life = [
    { type: "user_input_submitted", input: "hello" },
    { type: "run_completed", final_text: "done" },
  ];
  for (const [index, event] of life.entries()) {
    if (!wants(event.type)) continue;
    give("plugin/event", {
      run_id: SESSION.run_id,
      seq: index + 1,
      event,
      timestamp: "2026-01-01T00:00:00.000Z",
    });
  }
  if (bus === true) give("plugin/bus_event", { plugin: "other", name: "news", payload: {} });
}
