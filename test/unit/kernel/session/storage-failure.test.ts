import type { ClientKey, RunSelection, StoredEvent } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import type { SessionActor } from "../../../../kernel/src/session/session-actor.ts";
import { OFFLINE, openSessions } from "./session-fixture.ts";

const selection = OFFLINE as unknown as RunSelection;
const start = (actor: SessionActor, key: string, input = "say hello") =>
  actor.startRun({ clientRunId: key as ClientKey, selection, input, maxTurns: null });

/** Reads a live tail to its end. */
async function drain(actor: SessionActor): Promise<(StoredEvent | { gap: number })[]> {
  const { tail } = await actor.subscribe({ cursor: 0 });
  const items: (StoredEvent | { gap: number })[] = [];
  for await (const item of tail ?? []) {
    items.push(item);
    if ("payload" in item && item.payload.type === "run_completed") break;
  }
  return items;
}

async function typesOf(actor: SessionActor): Promise<string[]> {
  const { events } = await actor.subscribe({ cursor: 0 });
  return events.map(({ payload }) => payload.type);
}

describe("a disk that fails", () => {
  test("[S-047] at the first message fails the request and leaves the session as it was", async () => {
    const { sessions, disk } = await openSessions();
    const actor = await sessions.create(selection);
    disk.full = true;
    await expect(start(actor, "a")).rejects.toMatchObject({ code: "storage_failed" });
    expect(await typesOf(actor)).toEqual(["session_created"]);
    disk.full = false;
    await start(actor, "a");
    expect((await drain(actor)).at(-1)).toMatchObject({ payload: { type: "run_completed" } });
    await sessions.close();
  });

  test("[S-047] [S-246] in mid-run cuts the subscribers off, says why, and is settled once space returns", async () => {
    const { sessions, disk } = await openSessions();
    const actor = await sessions.create(selection);
    disk.fullAfter = "model_attempt_started";
    const stop = drain(actor);
    await start(actor, "a");
    const items = await stop;
    expect(items.at(-1)).toEqual({ gap: expect.any(Number) });
    expect(JSON.stringify(items)).not.toContain("run_completed");
    await expect(actor.subscribe({ cursor: 0 })).rejects.toMatchObject({ code: "storage_failed" });
    await expect(start(actor, "b")).rejects.toMatchObject({ code: "storage_failed" });

    delete disk.fullAfter;
    disk.full = false;
    const runId = await start(actor, "b");
    await drain(actor);
    const { events } = await actor.subscribe({ cursor: 0 });
    const failed = events.filter(({ payload }) => payload.type === "run_failed");
    expect(failed.map(({ payload }) => payload)).toEqual([
      expect.objectContaining({ error: expect.objectContaining({ code: "storage_failed" }) }),
    ]);
    expect(events.at(-1)).toMatchObject({ run_id: runId, payload: { type: "run_completed" } });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    await sessions.close();
  });
});
