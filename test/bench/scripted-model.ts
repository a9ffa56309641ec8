// A model provider that answers at once, as a process of its own so that its work is nobody else's. Run by path.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { answerTurn } from "./support/answer-turn.ts";
import { readTurn, wireOf } from "./support/read-turn.ts";
import { planTurn, type ServedRequest } from "./support/scenario.ts";

const workspace = process.argv[2] ?? process.cwd();
/** How long a model thinks before it answers. */
const thinkMs = Number(process.argv[3] ?? 0);
let served: ServedRequest[] = [];

const server = createServer((request, response) => {
  const arrivedAtUs = nowUs();
  void readBody(request).then(async (body) => {
    const url = request.url ?? "";
    if (url === "/served") {
      response.end(JSON.stringify(served));
      served = [];
      return;
    }
    const wire = wireOf(url);
    if (request.method !== "POST" || wire === undefined) {
      response.writeHead(404, { "content-type": "application/json" }).end("{}");
      return;
    }
    const turn = readTurn(wire, body);
    const plan = planTurn(turn, workspace);
    if (thinkMs > 0) await setTimeout(thinkMs);
    await answerTurn(wire, plan, response);
    const endedAtUs = nowUs();
    served.push({
      arrivedAtUs,
      endedAtUs,
      byteLength: body.length,
      main: plan.main,
      callCount: plan.calls.length,
      said: turn.steps.findLast((step) => step.kind === "user")?.text ?? "",
      resultLength: turn.steps.findLast((step) => step.kind === "result")?.text.length ?? 0,
    });
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.stdin.resume().on("end", () => process.exit(0));

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** The machine's monotonic clock, the same in every process. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
