import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { sendRequest } from "../../../../kernel/src/model/send-request.ts";
import { createGate } from "../../../support/gate.ts";

async function serve(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

/** Answers the bytes of each connection itself. */
async function serveTcp(onConnection: (socket: Socket, index: number) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    onConnection(socket, sockets.push(socket) - 1);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const post = (url: string, signal = new AbortController().signal, body = "{}") =>
  sendRequest(url, {
    method: "POST",
    headers: new Map([["content-type", "application/json"]]),
    body: [body],
    signal,
  });

async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

test("sends headers and body, and tells status, headers and body of the answer", async () => {
  const { url } = await serve((request, response) => {
    response.writeHead(418, "Teapot", { "X-Request-Id": "r1", "set-cookie": ["a=1", "b=2"] });
    const { method, headers } = request;
    const kept = { method, type: headers["content-type"], length: headers["content-length"] };
    void textOf(request).then((got) => response.end(JSON.stringify({ ...kept, got })));
  });
  const answer = await post(url, undefined, '{"ä":1}');
  expect(answer).toMatchObject({ status: 418, statusText: "Teapot" });
  expect(answer.headers.get("x-request-id")).toBe("r1");
  expect(answer.headers.get("set-cookie")).toBe("a=1, b=2");
  expect(JSON.parse(await textOf(answer.body))).toEqual({
    method: "POST",
    type: "application/json",
    length: "8",
    got: '{"ä":1}',
  });
});

test("a redirect is an answer and is not followed", async () => {
  let requests = 0;
  const { url } = await serve((_, response) => {
    requests += 1;
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  const answer = await post(url);
  await textOf(answer.body);
  expect([answer.status, requests]).toEqual([307, 1]);
});

test.for([
  ["gzip", gzipSync],
  ["X-GZIP", gzipSync],
  ["deflate", deflateSync],
  ["br", brotliCompressSync],
] as const)(
  "a body that is compressed without being asked to is read: %s",
  async ([name, compress]) => {
    const { url } = await serve((_, response) => {
      response.writeHead(200, { "content-encoding": name }).end(compress("data: hello\n\n"));
    });
    expect(await textOf((await post(url)).body)).toBe("data: hello\n\n");
  },
);

test("a compressed body that is none breaks while it is read", async () => {
  const { url } = await serve((_, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end("plain text");
  });
  await expect(textOf((await post(url)).body)).rejects.toMatchObject({ code: "Z_DATA_ERROR" });
});

test("nobody listens: the code of the network", async () => {
  const { server, url } = await serve(() => undefined);
  server.close();
  await once(server, "close");
  await expect(post(url)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("a connection that ends inside the body breaks the body", async () => {
  const url = await serveTcp((socket) => {
    socket.once("data", () => {
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", () => socket.destroy());
    });
  });
  const { body } = await post(url);
  await expect(textOf(body)).rejects.toMatchObject({ code: "ECONNRESET" });
});

test("a kept connection that the server has just closed is replaced by a new one, once", async () => {
  const connections: number[] = [];
  const url = await serveTcp((socket, index) => {
    connections.push(index);
    let requests = 0;
    socket.on("data", () => {
      requests += 1;
      if (index === 0 && requests === 2) return socket.resetAndDestroy();
      socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  expect(await textOf((await post(url)).body)).toBe("ok");
  expect(await textOf((await post(url)).body)).toBe("ok");
  expect(connections).toEqual([0, 1]);
});

test("several kept connections that the server has closed at once are all replaced", async () => {
  const bothOpen = createGate();
  let connections = 0;
  const url = await serveTcp((socket, index) => {
    connections = index + 1;
    if (connections === 2) bothOpen.open();
    let requests = 0;
    socket.on("data", () => {
      requests += 1;
      if (index < 2 && requests === 2) return socket.resetAndDestroy();
      void bothOpen.opened.then(() =>
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
      );
    });
  });
  const ask = async () => textOf((await post(url)).body);
  expect(await Promise.all([ask(), ask()])).toEqual(["ok", "ok"]);
  expect(await ask()).toBe("ok");
  expect(connections).toBe(3);
});

test("an answer that switches protocols is a failure, and no request that waits for ever", async () => {
  const url = await serveTcp((socket) => {
    const head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    socket.once("data", () => socket.write(head));
  });
  await expect(post(url)).rejects.toMatchObject({ code: "EPROTO" });
});

test("bodies that are sent at the same time, to slow readers and past failures, arrive as they are", async () => {
  const { url } = await serve((request, response) => {
    if (request.headers["x-fails"] === "yes") {
      request.once("data", () => request.socket.resetAndDestroy());
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      request.pause();
      setImmediate(() => request.resume());
    });
    request.once("end", () => {
      response.end(createHash("sha256").update(Buffer.concat(chunks)).digest("hex"));
    });
  });
  const ask = async (id: number) => {
    for (let turn = 0; turn < 6; turn += 1) {
      const body = `${id}ä${turn}😀`.repeat(20_000 + 30_000 * ((id * 5 + turn) % 7));
      const fails = (id + turn) % 5 === 0;
      const sent = sendRequest(url, {
        method: "POST",
        headers: new Map(fails ? [["x-fails", "yes"]] : []),
        body: turn % 2 === 0 ? [body] : [body.slice(0, 5), Buffer.from(body.slice(5)), ""],
        signal: new AbortController().signal,
      });
      if (fails) await expect(sent).rejects.toThrow();
      else
        expect(await textOf((await sent).body)).toBe(
          createHash("sha256").update(body).digest("hex"),
        );
    }
  };
  await Promise.all([0, 1, 2, 3].map(ask));
});

test("a new connection that is reset is not tried again", async () => {
  let connections = 0;
  const url = await serveTcp((socket) => {
    connections += 1;
    socket.once("data", () => socket.resetAndDestroy());
  });
  await expect(post(url)).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(connections).toBe(1);
});

test("aborting before the answer rejects and gives the connection up", async () => {
  const arrived = createGate();
  const closed = createGate();
  const url = await serveTcp((socket) => {
    socket.once("data", () => arrived.open());
    socket.once("close", () => closed.open());
  });
  const controller = new AbortController();
  const answer = post(url, controller.signal);
  const rejected = expect(answer).rejects.toMatchObject({ code: "ECONNRESET" });
  await arrived.opened;
  controller.abort();
  await rejected;
  await closed.opened;
});

test("aborting inside the body breaks it and gives the connection up", async () => {
  const closed = createGate();
  const url = await serveTcp((socket) => {
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"));
    socket.once("close", () => closed.open());
  });
  const controller = new AbortController();
  const { body } = await post(url, controller.signal);
  const text = expect(textOf(body)).rejects.toThrow();
  controller.abort();
  await text;
  await closed.opened;
});

test("aborting once the body has come, but before it was read, harms nobody", async () => {
  const { url } = await serve((_, response) => {
    response.end("whole");
  });
  const controller = new AbortController();
  const { body } = await post(url, controller.signal);
  await once(body, "readable");
  controller.abort();
  await new Promise(setImmediate);
  expect(body.destroyed).toBe(true);
});

test("a signal that is aborted already sends nothing", async () => {
  let requests = 0;
  const { url } = await serve(() => {
    requests += 1;
  });
  await expect(post(url, AbortSignal.abort())).rejects.toMatchObject({ code: "ECONNRESET" });
  expect(requests).toBe(0);
});
