import { RunCancel, RunRecallSteer, RunSteer } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createGate } from "../../support/gate.ts";
import { pick } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });

/** A run whose first answer ends when `gate` opens. */
async function startHeld(calls: readonly ReturnType<typeof bash>[] = []) {
  const gate = createGate();
  const kernel = await openTestKernel({
    answers: [{ text: "thinking", calls, until: gate.opened }, { text: "after" }],
  });
  const session = await kernel.createSession();
  const watch = kernel.watch(session);
  const runId = await kernel.start(session, "Hi");
  await watch.event("text_delta");
  const steer = (input: string) => kernel.client.request(RunSteer, { run_id: runId, input });
  const recall = async () =>
    (await kernel.client.request(RunRecallSteer, { run_id: runId })).recalled;
  return { kernel, session, watch, runId, gate, steer, recall };
}

function userTexts(kernel: TestKernel, request: number): unknown[] {
  const messages = pick(kernel.server.requests[request]?.body, "messages") as unknown[];
  return messages
    .filter((message) => pick(message, "role") === "user")
    .map((message) => pick(message, "content"));
}

describe("steering", () => {
  test("[S-146] what is said during a run is durable at once and reaches the model in order", async () => {
    const { kernel, watch, runId, gate, steer } = await startHeld();
    expect(await steer("first")).toEqual({ accepted: true });
    await steer("second");
    await watch.event("user_input_admitted", ({ input }) => input === "second");
    expect(watch.payloads("user_input_admitted").map(({ input }) => input)).toEqual([
      "first",
      "second",
    ]);
    gate.open();
    expect(await watch.end(runId)).toEqual({ type: "run_completed", final_text: "after" });
    expect(watch.payloads("user_input_submitted").map(({ input }) => input)).toEqual([
      "Hi",
      "first",
      "second",
    ]);
    expect(userTexts(kernel, 1)).toEqual(["Hi", "first", "second"]);
    const submitted = watch.events.filter(({ payload }) => payload.type === "user_input_submitted");
    expect(watch.payloads("user_input_applied").map((event) => event.user_input_seq)).toEqual(
      submitted.map(({ seq }) => seq),
    );
  });

  test("[S-146] an input waits for the end of the tool batch and never splits call and result", async () => {
    const { kernel, watch, runId, gate, steer } = await startHeld([bash("echo a"), bash("echo b")]);
    await steer("meanwhile");
    gate.open();
    await watch.end(runId);
    const messages = pick(kernel.server.requests[1]?.body, "messages") as unknown[];
    expect(messages.map((message) => pick(message, "role"))).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "tool",
      "user",
    ]);
  });

  test("[S-147] recall takes the newest input back and says null when none is left", async () => {
    const { kernel, watch, runId, gate, steer, recall } = await startHeld();
    await steer("keep");
    await steer("take back");
    expect([await recall(), await recall(), await recall()]).toEqual(["take back", "keep", null]);
    await steer("stays");
    gate.open();
    await watch.end(runId);
    expect(userTexts(kernel, 1)).toEqual(["Hi", "stays"]);
  });

  test("[S-147] the end of the run voids what still waits", async () => {
    const { kernel, session, watch, runId, gate, steer } = await startHeld();
    kernel.server.otherwise({ text: "next" });
    await steer("too late");
    await kernel.client.request(RunCancel, {
      run_id: runId,
    });
    await watch.end(runId);
    gate.open();
    await expect(steer("after the end")).rejects.toMatchObject({ code: "run_missing" });
    const { watch: later } = await kernel.run("Again", { session });
    expect(later.payloads("user_input_submitted").map(({ input }) => input)).toEqual([
      "Hi",
      "Again",
    ]);
  });

  test("an input that races the end of the run is either answered or refused", async () => {
    const kernel = await openTestKernel();
    kernel.server.otherwise({ text: "ok" });
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    for (let round = 0; round < 25; round += 1) {
      const runId = await kernel.start(session, "Hi");
      const sent: Promise<string>[] = [];
      let over = false;
      const ended = watch.end(runId).then(() => {
        over = true;
      });
      while (!over) {
        const input = `steer ${round}.${sent.length}`;
        const request = kernel.client.request(RunSteer, { run_id: runId, input });
        sent.push(
          request.then(
            () => input,
            ({ code }: { code: string }) => code,
          ),
        );
        await Promise.race([request.catch(() => undefined), ended]);
        if (sent.length >= 3) await ended;
      }
      const submitted = watch.payloads("user_input_submitted").map(({ input }) => input);
      for (const outcome of await Promise.all(sent)) {
        expect(outcome === "run_missing" || submitted.includes(outcome)).toBe(true);
      }
    }
  });
});
