import type { ClientKey, RunSelection, SessionId } from "@cookie-agent/sdk/protocol";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { BoundModel } from "../../../../kernel/src/model/bound-model.ts";
import type { SessionActor } from "../../../../kernel/src/session/session-actor.ts";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";

const selection = OFFLINE as unknown as RunSelection;
const start = (actor: SessionActor, key = "a") =>
  actor.startRun({ clientRunId: key as ClientKey, selection, input: "say hello", maxTurns: null });

/** A session on disk whose run has no end, and nobody who holds it. */
async function leaveUnfinished() {
  const opened = await openSessions();
  const { sessions, store, disk } = opened;
  const actor = await sessions.create(selection);
  const { tail } = await actor.subscribe({ cursor: 0 });
  disk.fullAfter = "model_attempt_started";
  await start(actor);
  // The tail ends when the run could not be recorded any more.
  for await (const _ of tail ?? []);
  await sessions.close();
  await store.close();
  return { ...opened, sessionId: actor.sessionId };
}

afterEach(() => {
  vi.useRealTimers();
});

describe("adoption", () => {
  test("[S-087] one that fails lets go of the tree, and a later one succeeds", async () => {
    const { sessionId, ...before } = await leaveUnfinished();
    const { sessions, store, disk } = await openSessions(before);
    disk.full = true;
    await expect(sessions.adopt(sessionId)).rejects.toMatchObject({ code: "storage_failed" });
    expect(await store.access(sessionId)).toBe("free");
    disk.full = false;
    const actor = await sessions.adopt(sessionId);
    expect(actor.meta().status).toBe("interrupted");
    expect(await store.access(sessionId)).toBe("owned");
    await sessions.close();
  });

  test("concurrent ones share one actor", async () => {
    const { sessionId, ...before } = await leaveUnfinished();
    const { sessions } = await openSessions(before);
    const actors = await Promise.all([1, 2, 3].map(() => sessions.adopt(sessionId)));
    expect(new Set(actors).size).toBe(1);
    await sessions.close();
  });

  test("[S-091] reading takes no lock and changes nothing", async () => {
    const { sessionId, ...before } = await leaveUnfinished();
    const { sessions, store } = await openSessions(before);
    const statuses = await Promise.all(
      [1, 2, 3].map(() => sessions.read(sessionId, (actor) => actor.meta().status)),
    );
    expect(statuses).toEqual(["running", "running", "running"]);
    expect(await store.access(sessionId)).toBe("free");
  });

  test("reading waits for an adoption under way, and does without one that fails", async () => {
    const { sessionId, ...before } = await leaveUnfinished();
    const { sessions, disk } = await openSessions(before);
    disk.full = true;
    const adopting = sessions.adopt(sessionId).catch(() => "failed");
    expect(await sessions.read(sessionId, (actor) => actor.writable)).toBe(false);
    expect(await adopting).toBe("failed");
    disk.full = false;
    const again = sessions.adopt(sessionId);
    expect(await sessions.read(sessionId, (actor) => actor.writable)).toBe(true);
    await again;
    await sessions.close();
  });

  test("an unknown session is missing for readers and writers", async () => {
    const { sessions } = await openSessions();
    const unknown = "01890000-0000-7000-8000-000000000000" as SessionId;
    const missing = { code: "session_missing" };
    await expect(sessions.adopt(unknown)).rejects.toMatchObject(missing);
    await expect(sessions.read(unknown, () => 1)).rejects.toMatchObject(missing);
  });
});

describe("closing", () => {
  test("takes no new session", async () => {
    const { sessions } = await openSessions();
    await sessions.close();
    await expect(sessions.create(selection)).rejects.toMatchObject({ code: "shutting_down" });
  });

  test("waits for an adoption under way and closes what came of it", async () => {
    const { sessionId, ...before } = await leaveUnfinished();
    const { sessions } = await openSessions(before);
    const adopting = sessions.adopt(sessionId);
    await sessions.close();
    expect((await adopting).writable).toBe(false);
  });

  test("[S-094] a run that ignores its cancellation holds it up for ten seconds at most", async () => {
    const { services, store } = await openSessions();
    const { models } = services.facts;
    const wedged = {
      ...services,
      facts: {
        ...services.facts,
        models: {
          list: () => models.list(),
          revision: models.revision,
          firstAvailable: () => models.firstAvailable(),
          has: () => true,
          resolveVariant: () => selection.model,
          bind: async () =>
            ({ ...(await models.bind(selection.model)), stream: hang }) as BoundModel,
        },
      },
    };
    const sessions = new SessionRegistry(wedged);
    const actor = await sessions.create(selection);
    const { tail } = await actor.subscribe({ cursor: 0 });
    await start(actor);
    for await (const item of tail ?? []) {
      if ("payload" in item && item.payload.type === "model_attempt_started") break;
    }
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let isClosed = false;
    const closing = sessions.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(9000);
    expect(isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1000);
    await closing;
    vi.useRealTimers();
    await store.close();
    expect(actor.meta().status).toBe("running");
  });
});

async function* hang(): AsyncGenerator<never, void, void> {
  await new Promise(() => undefined);
}
