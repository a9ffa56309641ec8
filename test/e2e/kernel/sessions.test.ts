import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ApprovalList,
  EventsSubscribe,
  SessionGet,
  SessionList,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionResume,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { isAlive } from "../../support/is-alive.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";
import { reopenAsKilled } from "../../support/reopen-as-killed.ts";
import { findLogs } from "../../support/session-log.ts";

const NEVER = new Promise<void>(() => undefined);
const bash = (command: string) => ({ name: "bash", arguments: { command } });
const FOREIGN = { code: "session_foreign" };

describe("a session without a message", () => {
  test("[S-023] is in memory alone until its first message, with what was set before", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "ok" }] });
    const session = await kernel.createSession();
    await kernel.client.request(SessionPermissionSet, {
      session_id: session,
      action: "bash",
      resource: "*",
      effect: "deny",
    });
    expect(await findLogs(kernel.project)).toEqual([]);
    const { sessions } = await kernel.client.request(SessionList, {});
    expect(sessions.map(({ session_id }) => session_id)).toEqual([session]);
    const { watch } = await kernel.run("Hi", { session });
    expect(watch.types.slice(0, 3)).toEqual([
      "session_created",
      "session_permission_overlay_set",
      "run_started",
    ]);
    expect(await findLogs(kernel.project)).toHaveLength(1);
  });

  test("[S-027] leaves nothing when the kernel closes, and no other process knows it", async () => {
    const first = await openTestKernel();
    const session = await first.createSession();
    const second = await openTestKernel({ on: first });
    expect((await second.client.request(SessionList, {})).sessions).toEqual([]);
    await first.close();
    await expect(
      second.client.request(SessionResume, { session_id: session }),
    ).rejects.toMatchObject({ code: "session_missing" });
    expect(await readdir(first.project.stateDir)).not.toContain("sessions");
  });
});

describe("ownership", () => {
  test("[S-084] [S-091] [D-090] [D-091] what another process owns can be read and not changed", async () => {
    const owner = await openTestKernel({ answers: [{ text: "mine" }] });
    const { sessionId: session_id, watch } = await owner.run("Hi");
    const other = await openTestKernel({ on: owner });
    const { client } = other;

    const { session } = await client.request(SessionGet, { session_id });
    expect(session.access).toBe("foreign");
    const page = await client.request(EventsSubscribe, { session_id });
    expect(page).toMatchObject({ live: false });
    expect(page.events).toHaveLength(watch.types.length);
    await client.request(SessionPermissionGet, { session_id });
    await client.request(ApprovalList, { root_session_id: session_id });

    await expect(other.start(session_id, "Hello")).rejects.toMatchObject(FOREIGN);
    await expect(client.request(SessionResume, { session_id })).rejects.toMatchObject(FOREIGN);
    await expect(
      client.request(SessionPermissionSet, {
        session_id,
        action: "bash",
        resource: "*",
        effect: "deny",
      }),
    ).rejects.toMatchObject(FOREIGN);

    await owner.close();
    const { session: resumed } = await client.request(SessionResume, { session_id });
    expect(resumed.access).toBe("owned");
    other.server.enqueue({ text: "yours" });
    const { end } = await other.run("Mine now", { session: session_id });
    expect(end).toEqual({ type: "run_completed", final_text: "yours" });
  });

  test("many readers and an adoption at the same time do not disturb each other", async () => {
    const owner = await openTestKernel({ answers: [{ text: "ok" }] });
    const { sessionId: session_id, watch } = await owner.run("Hi");
    await owner.close();
    const { client } = await openTestKernel({ on: owner });
    const pages = Array.from({ length: 10 }, () =>
      client.request(EventsSubscribe, { session_id, outputs: false }),
    );
    const adopted = [1, 2, 3].map(() => client.request(SessionResume, { session_id }));
    const lists = [1, 2].map(() => client.request(SessionList, {}));
    for (const { events } of await Promise.all(pages)) {
      expect(events).toHaveLength(watch.types.length);
    }
    await Promise.all([...adopted, ...lists]);
  });

  test("[S-085] a failed adoption can be tried again", async () => {
    const owner = await openTestKernel({ answers: [{ text: "ok" }] });
    const { sessionId: session_id } = await owner.run("Hi");
    const { client } = await openTestKernel({ on: owner });
    const failed = [1, 2].map(() => client.request(SessionResume, { session_id }));
    for (const attempt of await Promise.allSettled(failed)) {
      expect(attempt).toMatchObject({ status: "rejected", reason: FOREIGN });
    }
    await owner.close();
    const { session } = await client.request(SessionResume, { session_id });
    expect(session.access).toBe("owned");
  });
});

describe("what a dead process left open", () => {
  const options = { answers: [{ text: "on we go" }] };

  test("[S-085] [S-095] [S-096] [S-097] [S-098] is settled in order when the session is adopted, and not before", async () => {
    const first = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) },
      answers: [{ calls: [bash("touch made"), bash("touch made")] }],
    });
    const session_id = await first.createSession({ mode: "ask" });
    const before = first.watch(session_id, { interactive: true });
    const runId = await first.start(session_id, "Hi");
    const second = await reopenAsKilled(first, before.event("approval_escalated"), options);

    const read = await second.client.request(EventsSubscribe, { session_id });
    expect(read.events.map(({ payload }) => payload.type)).not.toContain("run_interrupted");
    await second.client.request(SessionResume, { session_id });
    const watch = second.watch(session_id);
    expect(await watch.end(runId)).toEqual({ type: "run_interrupted", reason: "daemon restart" });
    await watch.event("approval_finalized");
    expect(watch.types.slice(-5)).toEqual([
      "run_interrupted",
      "tool_call_terminated",
      "tool_call_terminated",
      "approval_cancelled",
      "approval_finalized",
    ]);
    expect(watch.payloads("tool_call_terminated")[0]).toMatchObject({
      outcome: "interrupted",
      result: null,
      error: {
        code: "prepared_capability_lost",
        message: expect.stringContaining("daemon restart"),
      },
    });
    expect(watch.payloads("approval_cancelled")[0]?.reason_code).toBe("prepared_capability_lost");
    expect(await readdir(second.project.cwd)).toEqual([]);
  });

  test("[B116] the next request pairs every call with a result", async () => {
    const first = await openTestKernel({ answers: [{ calls: [bash("echo on; sleep 60")] }] });
    const session_id = await first.createSession();
    const before = first.watch(session_id);
    await first.start(session_id, "Hi");
    const second = await reopenAsKilled(first, before.output("on"), options);
    const { end } = await second.run("Go on", { session: session_id });
    expect(end).toEqual({ type: "run_completed", final_text: "on we go" });
    const body = JSON.stringify(second.server.requests.at(-1)?.body);
    expect(body).toContain('"role":"tool"');
    expect(body).toContain("interrupted");
  });
});

describe("shutdown", () => {
  test("[S-094] [D-100] an active run ends with a record, and its processes are gone", async () => {
    const first = await openTestKernel({
      answers: [{ calls: [bash("echo $$ > pid; echo on; sleep 600")] }],
    });
    const session_id = await first.createSession();
    const watch = first.watch(session_id);
    const runId = await first.start(session_id, "Hi");
    await watch.output("on");
    await first.close();
    expect(first.kernel.connect).toThrow(/closing/);
    const second = await openTestKernel({ on: first });
    await second.client.request(SessionResume, { session_id });
    expect(await second.watch(session_id).end(runId)).toEqual({
      type: "run_cancelled",
      reason: "shutdown",
    });
    const events = await second.client.request(EventsSubscribe, { session_id });
    const ends = events.events.filter(({ payload }) => payload.type === "tool_call_terminated");
    expect(ends.map(({ payload }) => payload["outcome"])).toEqual(["cancelled"]);
    const pid = Number(await readFile(join(first.project.cwd, "pid"), "utf8"));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("[S-094] an approval that waits is cancelled with its run", async () => {
    const first = await openTestKernel({
      agents: { primary: agentDocument({ ...ALLOW_ALL, bash: "ask" }) },
      answers: [{ calls: [bash("touch made")] }],
    });
    const session_id = await first.createSession({ mode: "ask" });
    const before = first.watch(session_id, { interactive: true });
    await first.start(session_id, "Hi");
    await before.event("approval_escalated");
    await first.close();
    const second = await openTestKernel({ on: first });
    const { events } = await second.client.request(EventsSubscribe, { session_id });
    expect(events.slice(-4).map(({ payload }) => payload.type)).toEqual([
      "approval_cancelled",
      "approval_finalized",
      "tool_call_terminated",
      "run_cancelled",
    ]);
  });

  test("closing while a run is being admitted leaves no run behind", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "x", until: NEVER }] });
    const session = await kernel.createSession();
    const starting = kernel.start(session, "Hi").catch(({ code }: { code: string }) => code);
    await kernel.kernel.close();
    await starting;
    const second = await openTestKernel({ on: kernel });
    const { sessions } = await second.client.request(SessionList, {});
    expect(sessions.map(({ status }) => status)).not.toContain("running");
  });
});
