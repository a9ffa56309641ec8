import { randomUUID } from "node:crypto";
import type { JsonObject } from "../protocol/scalars.ts";
import type { OutputDeclaration } from "../protocol/tool.ts";
import { bytesBehind } from "../rpc/raw-frame.ts";
import type { Message, Transport } from "../rpc/transport.ts";
import { toWireError } from "../rpc/wire-error.ts";
import { type Answer, answerOf, excerpt, isRecord } from "./answer.ts";
import { DrivenCall, type OutputPiece } from "./driven-call.ts";
import { answerHostRequest, type FakeServices } from "./fake-services.ts";

type Frame = Record<string, unknown>;

export interface WireDriverOptions {
  readonly transport: Transport;
  readonly services: FakeServices;
  /** Whether the plugin is told that it may send raw bytes (E-016). */
  readonly raw: boolean;
  /** Waits for why the output ended, which a process may be about to say; bounded. */
  closed?(): Promise<unknown>;
}

export interface CallRequest {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly output: OutputDeclaration;
  readonly cwd: string;
  readonly resource?: string | null;
  readonly prepared?: string | null;
  readonly stdin?: boolean;
  readonly acknowledge?: boolean;
  readonly keep?: boolean;
  readonly onOutput?: (piece: OutputPiece) => void;
}

export interface StartedCall {
  readonly call: DrivenCall;
  readonly answer: Promise<Answer>;
  cancel(): void;
}

/** A request or notification that the plugin sent, other than progress and log. */
export interface PluginFrame {
  readonly method: string;
  readonly params: JsonObject;
  readonly isRequest: boolean;
}

/** As many frames of a plugin are kept as a test can want to see. */
const MOST_FRAMES = 4096;

/**
 * The kernel's end of a plugin's wire, without a kernel: sends anything, judges what comes, answers host requests with
 * fakes. Every wait is bounded.
 */
export class WireDriver {
  /** What the plugin's frames did wrong as frames (E-003 to E-007); each says what it must do instead. */
  readonly problems: string[] = [];
  readonly frames: PluginFrame[] = [];
  readonly logs: string[] = [];
  /** How many frames came before the first answer; null while there is none. */
  framesBeforeAnswer: number | null = null;
  readonly #options: WireDriverOptions;
  readonly #pending = new Map<string | number, (answer: Answer) => void>();
  /** Ids whose answer nobody waits for any more. */
  readonly #given = new Set<string | number>();
  readonly #calls = new Map<string, DrivenCall>();
  readonly #watchers = new Set<() => void>();
  #nextId = 0;
  /** The last id that was answered and never asked. */
  #strayId: string | number | undefined;
  #lost: string | undefined;

  constructor(options: WireDriverOptions) {
    this.#options = options;
    const { reader, flow } = options.transport;
    const close = () => this.lose("the plugin closed its output");
    reader.onClose(() => {
      if (options.closed === undefined) close();
      else void options.closed().finally(close);
    });
    reader.listen((message) => {
      flow?.dispatched(message);
      try {
        this.#receive(message);
      } finally {
        flow?.settled(message);
      }
    });
  }

  /** Why nothing can come any more; undefined while the wire stands. */
  get lost(): string | undefined {
    return this.#lost;
  }

  /** Everything that waits learns that nothing will come. */
  lose(why: string): void {
    this.#lost ??= why;
    for (const resolve of this.#pending.values()) resolve({ kind: "none", why: this.#lost });
    this.#pending.clear();
    this.#tell();
  }

  send(frame: Frame): void {
    const message: unknown = { jsonrpc: "2.0", ...frame };
    this.#options.transport.writer.write(message as Message).catch(() => undefined);
  }

  notify(method: string, params: JsonObject): void {
    this.send({ method, params });
  }

  /** The id that the next request gets: integers from 0 (E-004). */
  takeId(): number {
    this.#nextId += 1;
    return this.#nextId - 1;
  }

  async request(
    method: string,
    params: JsonObject | undefined,
    timeoutMs: number,
    id: string | number = this.takeId(),
  ): Promise<Answer> {
    const answer = this.awaitAnswer(id, timeoutMs);
    this.send({ id, method, ...(params === undefined ? {} : { params }) });
    return answer;
  }

  /** Waits for the answer to a request that is sent by other means. */
  awaitAnswer(id: string | number, timeoutMs: number): Promise<Answer> {
    if (this.#lost !== undefined) return Promise.resolve({ kind: "none", why: this.#lost });
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#pending.delete(id);
        this.#given.add(id);
        const stray =
          this.#strayId === undefined
            ? ""
            : `; it answered ${JSON.stringify(this.#strayId)}, which was not asked, and must give back the id ${JSON.stringify(id)} as it came`;
        resolve({ kind: "none", why: `no answer came within ${timeoutMs} ms${stray}` });
      }, timeoutMs);
      this.#pending.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
    });
  }

  /** True as soon as `condition` holds, false when it does not within the time or never can. */
  until(condition: () => boolean, timeoutMs: number): Promise<boolean> {
    if (condition()) return Promise.resolve(true);
    if (this.#lost !== undefined) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = (held: boolean) => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve(held);
      };
      const timer = setTimeout(() => finish(condition()), timeoutMs);
      const look = () => {
        if (condition()) finish(true);
        else if (this.#lost !== undefined) finish(false);
      };
      this.#watchers.add(look);
    });
  }

  call(request: CallRequest, timeoutMs: number): StartedCall {
    const invocationId = randomUUID();
    const acknowledge = (bytes: number) =>
      this.notify("plugin/tools/progress_ack", { invocation_id: invocationId, bytes });
    const call = new DrivenCall({
      invocationId,
      output: request.output,
      keep: request.keep !== false,
      ...(request.acknowledge === false ? {} : { acknowledge }),
      ...(request.onOutput === undefined ? {} : { onOutput: request.onOutput }),
    });
    this.#calls.set(invocationId, call);
    const id = this.takeId();
    const answer = this.request(
      "plugin/tools/call",
      {
        ...invocationOf(request, invocationId),
        resource: request.resource ?? null,
        prepared: request.prepared ?? null,
        stdin: request.stdin === true,
        limits: { max_lines: 2000, max_bytes: 51_200 },
      },
      timeoutMs,
      id,
    );
    const settle = this.#pending.get(id);
    this.#pending.set(id, (settled) => {
      // At once, not when somebody gets to know it: what follows in the same read is late.
      call.ended = true;
      settle?.(settled);
    });
    return { call, answer, cancel: () => this.notify("$/cancelRequest", { id }) };
  }

  prepare(
    request: Pick<CallRequest, "tool" | "arguments" | "cwd">,
    timeoutMs: number,
  ): Promise<Answer> {
    return this.request("plugin/tools/prepare", invocationOf(request, randomUUID()), timeoutMs);
  }

  #receive(message: Message): void {
    const frame: unknown = message;
    if (!isRecord(frame)) return;
    const { jsonrpc, id, method, params = {} } = frame;
    if (jsonrpc !== "2.0") {
      this.#report('sent a frame without "jsonrpc":"2.0"', "put it into every frame");
    }
    if (typeof method === "string") {
      if (isRecord(params)) this.#receiveCall(message, { id, method, params });
      else this.#report(`sent ${excerpt(method)} with params that are no object`, "send an object");
    } else if (typeof id === "string" || typeof id === "number") {
      this.#settle(id, frame);
    } else {
      this.#report(
        `answered with the id ${excerpt(JSON.stringify(id) ?? "none")}`,
        "give back the id of the request as it came",
      );
    }
    this.#tell();
  }

  #settle(id: string | number, frame: Frame): void {
    this.framesBeforeAnswer ??= this.frames.length;
    const resolve = this.#pending.get(id);
    const known = Object.keys(frame).every((key) =>
      ["jsonrpc", "id", "result", "error"].includes(key),
    );
    if (!known) this.#report("answered with a member that is none", "send result or error only");
    const answer = answerOf(frame);
    if (answer === null) {
      this.#report(
        `answered request ${id} with ${excerpt(JSON.stringify(frame))}`,
        "send either a result that is an object ({} when there is nothing to say) or an error {code, message}",
      );
    }
    if (resolve === undefined) {
      if (!this.#given.delete(id)) {
        this.#strayId = id;
        this.#report(
          `answered a request ${JSON.stringify(id)} that was not sent or is answered already`,
          "give back the id of the request as it came, once",
        );
      }
      return;
    }
    this.#pending.delete(id);
    resolve(answer ?? { kind: "none", why: "its answer is neither a result nor an error" });
  }

  #receiveCall(message: Message, frame: { id: unknown; method: string; params: Frame }): void {
    const { id, method, params } = frame;
    if (id === undefined && method === "host/tools/progress") {
      const call = this.#calls.get(String(params["invocation_id"]));
      if (call === undefined) this.#report("sent output of an unknown call", "name its invocation");
      else call.take(params, bytesBehind(message));
      return;
    }
    if (id === undefined && method === "host/log") {
      if (this.logs.length < MOST_FRAMES) this.logs.push(excerpt(String(params["message"])));
      return;
    }
    if (this.frames.length < MOST_FRAMES) {
      this.frames.push({ method, params, isRequest: id !== undefined });
    }
    if (id === undefined) return;
    void answerHostRequest(this.#options.services, method, params).then(
      (result) => this.send({ id, result }),
      (error: unknown) => this.send({ id, error: toWireError(error) }),
    );
  }

  #report(did: string, must: string): void {
    if (this.problems.length < 16) this.problems.push(`${did}; ${must}`);
  }

  #tell(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

function invocationOf(
  request: Pick<CallRequest, "tool" | "arguments" | "cwd">,
  invocationId: string,
): JsonObject {
  return {
    tool: request.tool,
    session_id: randomUUID(),
    run_id: randomUUID(),
    context_id: randomUUID(),
    invocation_id: invocationId,
    arguments: request.arguments,
    cwd: request.cwd,
    workspace_root: request.cwd,
  };
}
