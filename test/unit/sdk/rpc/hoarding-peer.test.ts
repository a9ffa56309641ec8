import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fromPlugin, request, toPlugin } from "@cookie-agent/sdk/protocol";
import { Connection, createLineTransport } from "@cookie-agent/sdk/rpc";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const KIB = 1024;
const REQUESTS = 2000;
const Ask = request(
  "host/ask",
  () => fromPlugin({}),
  () => toPlugin({ answer: z.string() }),
);

/** A kernel's end whose peer has sent many requests and reads nothing yet. */
function openFlooded(
  handler: () => Promise<{ answer: string }>,
  options: { bulky?: boolean } = {},
) {
  const input = new PassThrough();
  const output = new PassThrough();
  const transport = createLineTransport({ input, output, onBadLine: () => undefined });
  const connection = new Connection({ transport, side: "kernel", servesReadersOnly: true });
  connection.onRequest(Ask, handler, options);
  connection.listen();
  const frames = Array.from({ length: REQUESTS }, (_, id) =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "host/ask", params: {} }),
  );
  // As a pipe brings it: never all at once.
  for (let at = 0; at < REQUESTS; at += 100)
    input.write(`${frames.slice(at, at + 100).join("\n")}\n`);
  const readAll = async () => {
    let lines = 0;
    for await (const chunk of output) {
      lines += (chunk as Buffer).toString("latin1").split("\n").length - 1;
      if (lines === REQUESTS) break;
    }
    connection.close();
    return lines;
  };
  /** Every frame could have been handled since then: each takes a turn of the loop. */
  const handled = async () => {
    for (let turn = 0; turn < 2 * REQUESTS; turn += 1) await nextTurn();
    return input.isPaused();
  };
  return { handled, readAll };
}

describe("a peer that asks for more than it reads", () => {
  test("[E-012] is not served any more, then not read, and gets every answer once it reads", async () => {
    let served = 0;
    const { handled, readAll } = openFlooded(async () => {
      served += 1;
      return { answer: "x".repeat(64 * KIB) };
    });
    expect(await handled()).toBe(true);
    expect(served).toBeLessThan(8);
    expect(await readAll()).toBe(REQUESTS);
    expect(served).toBe(REQUESTS);
  });

  test("[E-012] bulky requests are handled four at a time, and wait in the pipe", async () => {
    let running = 0;
    let most = 0;
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { handled, readAll } = openFlooded(
      async () => {
        running += 1;
        most = Math.max(most, running);
        await opened;
        running -= 1;
        return { answer: "" };
      },
      { bulky: true },
    );
    expect(await handled()).toBe(true);
    expect(running).toBe(4);
    open();
    expect(await readAll()).toBe(REQUESTS);
    expect(most).toBe(4);
  });
});
