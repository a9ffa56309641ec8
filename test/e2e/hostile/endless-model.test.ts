import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RunCancel } from "@cookie-agent/sdk/protocol";
import { expect, onTestFinished, test } from "vitest";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";

const MANY_BYTES = 32 * 1024 * 1024;
const PIECE = "x".repeat(16 * 1024);
const chunkOf = (delta: object) =>
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "scripted",
    choices: [{ index: 0, delta, finish_reason: null }],
  })}\n\n`;

/** A kernel whose model sends one piece after the other for as long as it is listened to. */
async function useEndlessModel(
  pieceAt: (index: number) => string,
): Promise<TestKernel & { readonly sentMany: Promise<void> }> {
  let sawMany: () => void = () => undefined;
  const sentMany = new Promise<void>((resolve) => {
    sawMany = resolve;
  });
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    let index = 0;
    let sentBytes = 0;
    const send = () => {
      let takesMore = true;
      for (let count = 0; takesMore && count < 100; count += 1) {
        const piece = pieceAt(index);
        index += 1;
        sentBytes += piece.length;
        takesMore = response.write(piece);
      }
      if (sentBytes > MANY_BYTES) sawMany();
      if (response.destroyed) return;
      if (takesMore) setImmediate(send);
      else response.once("drain", send);
    };
    send();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}/v1`;
  const kernel = await openTestKernel({
    prepare: async (project) => {
      const scripted = await startModelServer();
      await scripted.close();
      const toml = providerToml({ ...scripted, baseUrl });
      await project.writeState("config.toml", toml);
    },
  });
  return { ...kernel, sentMany };
}

const call = (index: number, text: string) => ({
  tool_calls: [
    {
      index: 0,
      ...(index === 0 && { id: "a", type: "function" }),
      function: { ...(index === 0 && { name: "bash" }), arguments: text },
    },
  ],
});

test.for<[string, (index: number) => string]>([
  ["text", () => chunkOf({ content: PIECE })],
  ["reasoning", () => chunkOf({ reasoning_content: PIECE })],
  ["a line", (index) => (index === 0 ? "data: " : PIECE)],
  ["an event", () => `data: ${PIECE}\n`],
  ["arguments", (index) => chunkOf(call(index, index === 0 ? '{"command":"' : PIECE))],
])("a model that sends %s for ever is cut off and the run fails", async ([, pieceAt]) => {
  const kernel = await useEndlessModel(pieceAt);
  const { end } = await kernel.run("Hi");
  expect(end).toMatchObject({ type: "run_failed", error: { code: "model_error" } });
});

test.for<[string, (index: number) => string]>([
  ["deltas", () => chunkOf({})],
  ["comments", () => `: ${PIECE}\n\n`],
])("a model that sends empty %s for ever can be cancelled", async ([, pieceAt]) => {
  const kernel = await useEndlessModel(pieceAt);
  const session = await kernel.createSession();
  const watch = kernel.watch(session);
  const runId = await kernel.start(session, "Hi");
  await kernel.sentMany;
  await kernel.client.request(RunCancel, { run_id: runId });
  expect(await watch.end(runId)).toMatchObject({ type: "run_cancelled" });
});
