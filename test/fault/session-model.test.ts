import { cpSync } from "node:fs";
import { join } from "node:path";
import {
  type ClientKey,
  CookieError,
  RunCancel,
  type RunId,
  RunRecallSteer,
  RunSteer,
  SessionFork,
  SessionGet,
  type SessionId,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionRename,
  SessionResume,
  SessionRevert,
} from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { pick, startModelServer } from "../support/model-server.ts";
import { configure, openTestKernel, type TestKernel } from "../support/open-test-kernel.ts";
import { faultProject } from "./support/fault-project.ts";
import { lastRequest } from "./support/intact-session.ts";
import { openEnds } from "./support/log-lines.ts";

const RUNS = process.env["COOKIE_FAULT_RUNS"] === "all" ? 500 : 12;

/** What a session should be, told by what was done to it. */
interface Model {
  /** What a model should be shown of the people's side. */
  said: string[];
  title: string | null;
  denied: string[];
  /** Places that can be gone back to: the end of a run, and what was true then. */
  points: {
    readonly seq: number;
    readonly said: string[];
    readonly title: string | null;
    readonly denied: string[];
  }[];
}

interface Real {
  kernel: TestKernel;
  session: SessionId;
  /** Names every copy of the store. */
  copies: number;
  count: number;
  readonly reopen: () => Promise<void>;
}

class Say implements fc.AsyncCommand<Model, Real> {
  readonly steered: readonly boolean[];
  /** @param steered One entry an input said into the run; true: it is taken back. */
  constructor(steered: readonly boolean[]) {
    this.steered = steered;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, real: Real): Promise<void> {
    const { kernel, session } = real;
    const text = `Say ${++real.count}.`;
    const { promise: until, resolve: open } = gate();
    kernel.server.enqueue({ text: "Held.", until });
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, text, { key: `key-${real.count}` });
    model.said.push(text);
    await watch.event("model_request_prepared", (_payload, event) => event.run_id === runId);
    const added: string[] = [];
    for (const isTakenBack of this.steered) await this.#steer(real, runId, isTakenBack, added);
    open();
    const end = await watch.end(runId);
    expect(end.type).toBe("run_completed");
    model.said.push(...added);
    const { seq } = watch.events.findLast((event) => event.run_id === runId) ?? { seq: 0 };
    const { said, title, denied } = model;
    model.points.push({ seq, said: [...said], title, denied: [...denied] });
    expect(shownBy(kernel)).toEqual(model.said);
  }
  async #steer(real: Real, run_id: RunId, isTakenBack: boolean, added: string[]): Promise<void> {
    const { client } = real.kernel;
    const input = `Steer ${++real.count}.`;
    await client.request(RunSteer, { run_id, input });
    if (!isTakenBack) added.push(input);
    else expect((await client.request(RunRecallSteer, { run_id })).recalled).toBe(input);
  }
  toString(): string {
    return `say(${this.steered.map((back) => (back ? "steer+recall" : "steer")).join()})`;
  }
}

class Cancel implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true;
  }
  async run(model: Model, { kernel, session, ...real }: Real): Promise<void> {
    const text = `Cancelled ${real.copies} ${model.said.length}.`;
    kernel.server.enqueue({ text: "Never.", until: new Promise(() => undefined) });
    const watch = kernel.watch(session);
    const runId = await kernel.start(session, text);
    model.said.push(text);
    await watch.event("model_request_prepared", (_payload, event) => event.run_id === runId);
    await kernel.client.request(RunCancel, { run_id: runId });
    expect((await watch.end(runId)).type).toBe("run_cancelled");
  }
  toString(): string {
    return "cancel";
  }
}

class Rename implements fc.AsyncCommand<Model, Real> {
  readonly title: string;
  constructor(title: string) {
    this.title = title;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, real: Real): Promise<void> {
    const client_rename_id = `rename-${++real.count}` as ClientKey;
    const change = { type: "set" as const, title: this.title };
    await real.kernel.client.request(SessionRename, {
      session_id: real.session,
      client_rename_id,
      change,
    });
    model.title = this.title;
  }
  toString(): string {
    return `rename(${this.title})`;
  }
}

class Deny implements fc.AsyncCommand<Model, Real> {
  check(): boolean {
    return true;
  }
  async run(model: Model, real: Real): Promise<void> {
    const resource = `denied-${++real.count}`;
    const rule = { action: "write", resource, effect: "deny" } as const;
    await real.kernel.client.request(SessionPermissionSet, { session_id: real.session, ...rule });
    model.denied.push(resource);
  }
  toString(): string {
    return "deny";
  }
}

class Revert implements fc.AsyncCommand<Model, Real> {
  readonly share: number;
  constructor(share: number) {
    this.share = share;
  }
  check({ points }: Model): boolean {
    return points.length > 0;
  }
  async run(model: Model, real: Real): Promise<void> {
    const index = Math.floor(this.share * model.points.length);
    const point = model.points[index];
    if (point === undefined) return;
    const request = { session_id: real.session, through_seq: point.seq };
    await real.kernel.client.request(SessionRevert, request);
    goTo(model, index);
  }
  toString(): string {
    return `revert(${this.share})`;
  }
}

/** Goes on in a fork; the session that it was taken from must stay as it is. */
class Fork implements fc.AsyncCommand<Model, Real> {
  readonly share: number;
  constructor(share: number) {
    this.share = share;
  }
  check({ points }: Model): boolean {
    return points.length > 0;
  }
  async run(model: Model, real: Real): Promise<void> {
    const { client } = real.kernel;
    const index = Math.floor(this.share * model.points.length);
    const point = model.points[index];
    if (point === undefined) return;
    const before = await client.readEvents(real.session);
    const request = { session_id: real.session, through_seq: point.seq };
    const { session_id } = await client.request(SessionFork, request);
    expect(await client.readEvents(real.session)).toEqual(before);
    await client.request(SessionResume, { session_id });
    real.session = session_id;
    goTo(model, index);
    const { session } = await client.request(SessionGet, { session_id });
    expect(session.title).toBe(`${model.title ?? "Untitled"} (fork)`);
    model.title = session.title;
  }
  toString(): string {
    return `fork(${this.share})`;
  }
}

class Crash implements fc.AsyncCommand<Model, Real> {
  readonly isInRun: boolean;
  constructor(isInRun: boolean) {
    this.isInRun = isInRun;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, real: Real): Promise<void> {
    if (this.isInRun) {
      const text = `Crashed ${++real.count}.`;
      real.kernel.server.enqueue({ text: "Never.", until: new Promise(() => undefined) });
      const watch = real.kernel.watch(real.session);
      const runId = await real.kernel.start(real.session, text);
      await watch.event("model_request_prepared", (_payload, event) => event.run_id === runId);
      model.said.push(text);
    }
    await real.reopen();
  }
  toString(): string {
    return this.isInRun ? "crash in a run" : "crash";
  }
}

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const commands = fc.commands(
  [
    fc.array(fc.boolean(), { maxLength: 3 }).map((steered) => new Say(steered)),
    fc.constant(new Cancel()),
    fc.constantFrom("One", "Two", "Three").map((title) => new Rename(title)),
    fc.constant(new Deny()),
    share.map((at) => new Revert(at)),
    share.map((at) => new Fork(at)),
    fc.boolean().map((isInRun) => new Crash(isInRun)),
  ],
  { maxCommands: 14 },
);

describe("a session under any sequence of operations and crashes", () => {
  test("[killed: append, settings, branch, recovery, opening] [S-021] [S-061] [S-146] [S-229] [S-230] is what a small model says", {
    timeout: 600_000,
  }, async () => {
    const project = await faultProject();
    const server = await startModelServer();
    onTestFinished(() => server.close());
    server.otherwise({ text: "Done." });
    await configure(project, server);
    let stores = 0;
    const open = async (dataDir: string) => openTestKernel({ on: { project, server }, dataDir });
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        let dataDir = join(project.home, `store-${++stores}`);
        const kernel = await open(dataDir);
        const session = await kernel.createSession();
        const real: Real = {
          kernel,
          session,
          copies: 0,
          count: 0,
          async reopen() {
            const before = await real.kernel.client.readEvents(real.session);
            const copy = join(project.home, `store-${++stores}`);
            cpSync(dataDir, copy, { recursive: true });
            const lost = real.kernel;
            dataDir = copy;
            real.kernel = await open(copy);
            await lost.close();
            await real.kernel.client.request(SessionResume, { session_id: real.session });
            const after = await real.kernel.client.readEvents(real.session);
            expect(after.slice(0, before.length)).toEqual(before);
            expect(openEnds(after.filter(isAtRest))).toMatchObject({ calls: [] });
          },
        };
        try {
          const model: Model = { said: [], title: null, denied: [], points: [] };
          // A session that nobody has said anything to is not on the disk.
          await new Say([]).run(model, real);
          const { session: meta } = await kernel.client.request(SessionGet, {
            session_id: session,
          });
          model.title = meta.title;
          for (const point of model.points) Object.assign(point, { title: meta.title });
          await fc.asyncModelRun(() => ({ model, real }), sequence);
          await expectAsModelled(model, real);
          await real.reopen();
          await expectAsModelled(model, real);
          await new Say([false]).run(model, real);
        } finally {
          await real.kernel.close();
        }
      }),
      { numRuns: RUNS },
    );
  });
});

async function expectAsModelled(model: Model, { kernel, session }: Real): Promise<void> {
  const { session: meta } = await kernel.client.request(SessionGet, { session_id: session });
  expect(meta.title).toBe(model.title);
  expect(meta.status).not.toBe("running");
  const { permissions } = await kernel.client.request(SessionPermissionGet, {
    session_id: session,
  });
  const write = permissions.find(({ action }) => action === "write");
  const denied = write?.patterns.filter(({ effect }) => effect === "deny") ?? [];
  expect(denied.map(({ resource }) => resource).sort()).toEqual([...model.denied].sort());
}

function goTo(model: Model, index: number): void {
  const point = model.points[index];
  if (point === undefined) throw new CookieError("engine", "the model has no such point");
  model.said = [...point.said];
  model.title = point.title;
  model.denied = [...point.denied];
  model.points = model.points.slice(0, index + 1);
}

/** What people said, as the last request showed it. */
function shownBy({ server }: TestKernel): string[] {
  const messages = pick(lastRequest(server).body, "messages");
  const list: unknown[] = Array.isArray(messages) ? messages : [];
  return list
    .filter((message) => pick(message, "role") === "user")
    .map((message) => {
      const content = pick(message, "content");
      return typeof content === "string" ? content : String(pick(content, -1, "text"));
    });
}

function isAtRest({ payload }: { payload: { type: string } }): boolean {
  return payload.type.startsWith("tool_call");
}

function gate(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
