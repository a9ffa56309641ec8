import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ApprovalList,
  type ClientKey,
  RunCancel,
  SessionFork,
  SessionGet,
  type SessionId,
  SessionList,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionRename,
  SessionResume,
  SessionRevert,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { delivered, writeHookPlugins } from "../../support/hook-plugin.ts";
import { pick } from "../../support/model-server.ts";
import { agentDocument, openTestKernel, type TestKernel } from "../../support/open-test-kernel.ts";
import { findLogs, parseLog, readLog } from "../../support/session-log.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });
/** Titles come with the run, not beside it. */
const EXCERPTS = { headless: true, config: "[session_title]\n" };
const key = (text: string) => text as ClientKey;

/** What the model was told in a request, in order. */
function told(kernel: TestKernel, request: number): string[] {
  const messages = pick(kernel.server.requests[request]?.body, "messages") as unknown[];
  return messages
    .filter((message) => pick(message, "role") !== "system")
    .map((message) => `${pick(message, "role")}: ${JSON.stringify(pick(message, "content"))}`);
}

async function logOf(kernel: TestKernel, session: SessionId) {
  const file = (await findLogs(kernel.project)).find((path) => path.includes(session));
  if (file === undefined) throw new Error(`no log of ${session}`);
  return file;
}

/** The last event of each run of a session, oldest first. */
async function ends(kernel: TestKernel, session: SessionId): Promise<number[]> {
  const events = await readLog(await logOf(kernel, session));
  return events.filter(({ payload }) => payload.type === "run_completed").map(({ seq }) => seq);
}

const revert = (kernel: TestKernel, session: SessionId, seq: number) =>
  kernel.client.request(SessionRevert, { session_id: session, through_seq: seq });
const fork = (kernel: TestKernel, session: SessionId, seq: number) =>
  kernel.client.request(SessionFork, { session_id: session, through_seq: seq });

describe("a revert", () => {
  test("[S-061] [S-229] [S-272] hides what came after, in the next request, after a restart, and in no file", async () => {
    const kernel = await openTestKernel({
      answers: [
        { text: "one" },
        { calls: [bash("echo kept > made.txt")] },
        { text: "two" },
        { text: "three" },
        { text: "four" },
      ],
    });
    const { sessionId: session } = await kernel.run("First");
    await kernel.run("Second", { session });
    const [first] = await ends(kernel, session);
    const before = await readFile(await logOf(kernel, session), "utf8");
    const watch = kernel.watch(session);
    const reverted = await revert(kernel, session, first ?? 0);
    expect(reverted.session).toMatchObject({ status: "idle", session_id: session });
    expect(reverted.instructions_override).toBeUndefined();
    const marker = await watch.event("session_reverted");
    expect(marker.payload.through_seq).toBe(first);
    expect(marker.run_id).toBeNull();
    expect(reverted.session.last_event_seq).toBe(marker.seq);
    const after = await readFile(await logOf(kernel, session), "utf8");
    expect(after.startsWith(before)).toBe(true);
    expect(await readFile(join(kernel.project.cwd, "made.txt"), "utf8")).toBe("kept\n");

    await kernel.run("Third", { session });
    expect(told(kernel, 3)).toEqual(['user: "First"', 'assistant: "one"', 'user: "Third"']);
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    await again.run("Fourth", { session });
    expect(told(again, 4)).toEqual([
      'user: "First"',
      'assistant: "one"',
      'user: "Third"',
      'assistant: "three"',
      'user: "Fourth"',
    ]);
  });

  test("[S-021] into the middle of a run ends that run and answers no call of it", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [bash("echo 1"), bash("echo 2")] }, { text: "done" }, { text: "on" }],
    });
    const { sessionId: session } = await kernel.run("Go");
    const events = await readLog(await logOf(kernel, session));
    const started = events.filter(({ payload }) => payload.type === "tool_call_started");
    expect(started).toHaveLength(2);
    const { session: meta } = await revert(kernel, session, started[1]?.seq ?? 0);
    expect(meta.status).toBe("idle");
    const types = (await kernel.run("On", { session })).watch.types;
    expect(types.slice(types.indexOf("session_reverted") + 1)).not.toContain(
      "tool_call_terminated",
    );
    expect(types).not.toContain("run_interrupted");
    expect(told(kernel, 2)).toEqual([
      'user: "Go"',
      expect.stringContaining("assistant"),
      expect.stringContaining("never ran"),
      expect.stringContaining("never ran"),
      'user: "On"',
    ]);
  });

  test("[S-229] is refused while a run runs, and for an event that there is not", async () => {
    const kernel = await openTestKernel({ answers: [{ calls: [bash("cat")] }, { text: "x" }] });
    const session = await kernel.createSession({ mode: "yolo" });
    const watch = kernel.watch(session, { interactive: true });
    const run = await kernel.start(session, "Wait");
    await watch.event("tool_call_started");
    await expect(revert(kernel, session, 1)).rejects.toMatchObject({ code: "session_running" });
    await kernel.client.request(RunCancel, { run_id: run });
    await watch.end(run);
    await expect(revert(kernel, session, 9999)).rejects.toMatchObject({
      code: "invalid_sequence",
    });
    expect(watch.types).not.toContain("session_reverted");
  });

  test("[S-061] takes back overlay, title and selection; one revert behind another hides both", async () => {
    const kernel = await openTestKernel({
      ...EXCERPTS,
      answers: [{ text: "a" }, { text: "b" }],
    });
    const { sessionId: session } = await kernel.run("First words");
    const [first] = await ends(kernel, session);
    await kernel.client.request(SessionPermissionSet, {
      session_id: session,
      action: "bash",
      resource: "*",
      effect: "deny",
    });
    await kernel.client.request(SessionRename, {
      session_id: session,
      client_rename_id: key("r1"),
      change: { type: "set", title: "Mine" },
    });
    await kernel.run("Second", { session });
    const [, second] = await ends(kernel, session);
    await revert(kernel, session, second ?? 0);
    const { session: kept } = await kernel.client.request(SessionGet, { session_id: session });
    expect(kept.title).toBe("Mine");
    const { session: back } = await revert(kernel, session, first ?? 0);
    expect(back.title).toBe("First words");
    const overlay = await kernel.client.request(SessionPermissionGet, { session_id: session });
    expect(JSON.stringify(overlay.permissions)).not.toContain("session_overlay");
    // The key is free again on this branch.
    await kernel.client.request(SessionRename, {
      session_id: session,
      client_rename_id: key("r1"),
      change: { type: "set", title: "Other" },
    });
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    const { session: reopened } = await again.client.request(SessionGet, { session_id: session });
    expect(reopened.title).toBe("Other");
  });

  test("[S-229] drops approvals of what it hides", async () => {
    const kernel = await openTestKernel({
      answers: [{ calls: [bash("echo hi")] }, { text: "x" }],
      agents: { primary: agentDocument({ bash: "ask" }) },
    });
    const { sessionId: session } = await kernel.run("Go", { mode: "auto_approve_y" });
    const list = () => kernel.client.request(ApprovalList, { root_session_id: session });
    expect((await list()).approvals).toHaveLength(1);
    await revert(kernel, session, 1);
    expect((await list()).approvals).toEqual([]);
  });
});

describe("a fork", () => {
  test("[S-230] [S-231] [S-034] is a tree of its own with the copied prefix, a closing marker and its title; the source stays as it is", async () => {
    const kernel = await openTestKernel({
      ...EXCERPTS,
      answers: [{ text: "one" }, { text: "two" }, { text: "three" }, { text: "four" }],
    });
    const { sessionId: source } = await kernel.run("First");
    await kernel.run("Second", { session: source });
    const [first] = await ends(kernel, source);
    const before = await readFile(await logOf(kernel, source), "utf8");
    const { session_id: forked } = await fork(kernel, source, first ?? 0);
    expect(await readFile(await logOf(kernel, source), "utf8")).toBe(before);
    const original = parseLog(before);
    const copy = await readLog(await logOf(kernel, forked));
    const prefix = original.slice(0, first);
    expect(copy.slice(0, first)).toEqual(
      prefix.map((event, index) => ({
        ...event,
        session_id: forked,
        payload:
          index > 0 ? event.payload : { ...event.payload, short_id: expect.any(String) as string },
      })),
    );
    const handle = (events: typeof copy) => pick(events[0]?.payload, "short_id");
    expect(handle(copy)).not.toBe(handle(original));
    expect(copy.slice(first).map(({ payload, run_id, seq }) => [seq, run_id, payload])).toEqual([
      [(first ?? 0) + 1, null, { type: "session_reverted", through_seq: first }],
      [
        (first ?? 0) + 2,
        null,
        {
          type: "session_title_committed",
          change: {
            kind: "user_set",
            title: "First (fork)",
            client_rename_id: `fork-${forked}`,
          },
          input_through_seq: expect.any(Number) as number,
        },
      ],
    ]);
    const { sessions } = await kernel.client.request(SessionList, {});
    expect(sessions.find(({ session_id }) => session_id === forked)).toMatchObject({
      title: "First (fork)",
      status: "idle",
      origin: { type: "root" },
    });
    await kernel.run("Elsewhere", { session: forked });
    expect(told(kernel, 2)).toEqual(['user: "First"', 'assistant: "one"', 'user: "Elsewhere"']);
    await kernel.run("Here", { session: source });
    expect(told(kernel, 3).at(-2)).toBe('assistant: "two"');
    expect(told(kernel, 3)).toHaveLength(5);
  });

  test("[S-230] keeps what this version does not know, and leaves out what is no record", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "one" }, { text: "two" }] });
    const { sessionId: source } = await kernel.run("First");
    await kernel.close();
    const file = await logOf(kernel, source);
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    const tip = lines.length;
    const unknown = JSON.stringify({
      ...JSON.parse(lines.at(-1) ?? ""),
      run_id: null,
      seq: tip + 1,
      payload: { type: "from_the_future", deep: { kept: [1] } },
    });
    await appendFile(file, `\0\0\nno record\n${unknown}\n{"seq":`);
    const again = await openTestKernel({ on: kernel });
    const { session_id: forked } = await fork(again, source, tip + 1);
    const copied = (await readFile(await logOf(again, forked), "utf8")).trimEnd().split("\n");
    expect(copied).toHaveLength(tip + 3);
    expect(copied[tip]).toBe(unknown);
    await again.run("On", { session: forked });
    expect(told(again, 1)).toEqual(['user: "First"', 'assistant: "one"', 'user: "On"']);
  });

  test("[S-230] of a session that another process runs ends that run in the copy only", async () => {
    const owner = await openTestKernel({
      answers: [{ calls: [bash("cat")] }, { text: "owner" }, { text: "forked" }],
    });
    const source = await owner.createSession({ mode: "yolo" });
    const watch = owner.watch(source, { interactive: true });
    const run = await owner.start(source, "Wait");
    const started = await watch.event("tool_call_started");
    const other = await openTestKernel({ on: owner });
    await expect(other.client.request(SessionResume, { session_id: source })).rejects.toMatchObject(
      { code: "session_foreign" },
    );
    const { session_id: forked } = await fork(other, source, started.seq);
    const { session } = await other.client.request(SessionResume, { session_id: forked });
    expect(session.status).toBe("idle");
    const types = (await readLog(await logOf(other, forked))).map(({ payload }) => payload.type);
    expect(types.slice(-2)).toEqual(["session_reverted", "session_title_committed"]);
    await owner.client.request(RunCancel, { run_id: run });
    expect((await watch.end(run)).type).toBe("run_cancelled");
  });

  test("[S-230] needs something that was said, and an event that there is", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "one" }] });
    const { sessionId: source } = await kernel.run("First");
    const unsaid = await kernel.createSession();
    for (const [session, seq] of [
      [source, 1],
      [source, 9999],
      [unsaid, 1],
    ] as const) {
      await expect(fork(kernel, session, seq)).rejects.toMatchObject({ code: "invalid_sequence" });
    }
    expect(await findLogs(kernel.project)).toHaveLength(1);
    const { sessions } = await kernel.client.request(SessionList, {});
    expect(sessions).toHaveLength(2);
  });

  test("[S-230] [S-061] follows the branch that was visible at the event it is taken at", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "one" }, { text: "two" }, { text: "three" }, { text: "four" }],
    });
    const { sessionId: source } = await kernel.run("First");
    await kernel.run("Second", { session: source });
    const [first] = await ends(kernel, source);
    await revert(kernel, source, first ?? 0);
    await kernel.run("Third", { session: source });
    const [, second, third] = await ends(kernel, source);
    const now = await fork(kernel, source, third ?? 0);
    await kernel.run("On", { session: now.session_id });
    expect(told(kernel, 3)).toEqual([
      'user: "First"',
      'assistant: "one"',
      'user: "Third"',
      'assistant: "three"',
      'user: "On"',
    ]);
    // What a later marker hides was still there at that event.
    kernel.server.enqueue({ text: "five" });
    const then = await fork(kernel, source, second ?? 0);
    await kernel.run("Back", { session: then.session_id });
    expect(told(kernel, 4)).toEqual([
      'user: "First"',
      'assistant: "one"',
      'user: "Second"',
      'assistant: "two"',
      'user: "Back"',
    ]);
  });

  test("[S-024] that cannot be read leaves nothing behind", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "one" }] });
    const { sessionId: source } = await kernel.run("First");
    await kernel.close();
    const file = await logOf(kernel, source);
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
    await writeFile(file, `${[...lines.slice(1), lines[0]].join("\n")}\n`);
    const again = await openTestKernel({ on: kernel });
    await expect(fork(again, source, 3)).rejects.toMatchObject({ code: "storage_failed" });
    expect(await findLogs(again.project)).toHaveLength(1);
  });
});

describe("a rename", () => {
  const rename = (
    kernel: TestKernel,
    session: SessionId,
    id: string,
    change: { type: "set"; title: string } | { type: "clear" } | { type: "reset" },
  ) =>
    kernel.client.request(SessionRename, {
      session_id: session,
      client_rename_id: key(id),
      change,
    });

  test("[S-028] [S-033] beats automatic titles, counts once for its key, and its reset lets the session name itself", async () => {
    const kernel = await openTestKernel({
      ...EXCERPTS,
      answers: [{ text: "a" }, { text: "b" }, { text: "c" }],
    });
    const session = await kernel.createSession();
    const mine = { type: "set", title: "Mine" } as const;
    const first = await rename(kernel, session, "k1", mine);
    expect(first).toMatchObject({ client_rename_id: "k1", session: { title: "Mine" } });
    const { watch } = await kernel.run("Say something", { session });
    await rename(kernel, session, "k1", mine);
    expect(watch.payloads("session_title_committed")).toHaveLength(1);
    await expect(rename(kernel, session, "k1", { type: "clear" })).rejects.toMatchObject({
      code: "idempotency_conflict",
      data: { session_id: session, client_rename_id: "k1" },
    });
    expect((await rename(kernel, session, "k2", { type: "clear" })).session.title).toBeNull();
    await kernel.run("More", { session });
    const get = () => kernel.client.request(SessionGet, { session_id: session });
    expect((await get()).session.title).toBeNull();
    await rename(kernel, session, "k3", { type: "reset" });
    await kernel.run("Again", { session });
    expect((await get()).session.title).toBe("Say something");
  });

  test.for([
    ["", "blank"],
    [" \t ", "blank"],
    ["x".repeat(513), "too long"],
    ["é".repeat(257), "too long in bytes"],
    ["x".repeat(10_000), "far too long"],
    ["\u200b\u2060", "nothing that is shown"],
    ["a\nb", "two lines"],
    ["\u001b[31m", "an escape"],
  ])("[S-009] refuses %j, which is %s", async ([title]) => {
    const kernel = await openTestKernel({ ...EXCERPTS, answers: [{ text: "a" }] });
    const { sessionId: session } = await kernel.run("Hi");
    await expect(
      rename(kernel, session, "k", { type: "set", title: title ?? "" }),
    ).rejects.toMatchObject({ code: "invalid_title" });
    const { session: meta } = await kernel.client.request(SessionGet, { session_id: session });
    expect(meta.title).toBe("Hi");
  });
});

describe("plugins", () => {
  test("[E-160] [E-163] are asked before a fork and a revert, and may block both or give the next instructions", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "one" }],
      prepare: (project) =>
        writeHookPlugins(project, [
          {
            name: "guard",
            hooks: {
              session_before_fork: () => ({ action: "block", reason: "no copies" }),
              session_before_revert: () => ({
                action: "override",
                instructions_override: "Start anew.",
              }),
            },
          },
        ]),
    });
    const { sessionId: session } = await kernel.run("First");
    const [end] = await ends(kernel, session);
    await expect(fork(kernel, session, end ?? 0)).rejects.toMatchObject({
      code: "operation_blocked",
      message: expect.stringContaining("no copies") as string,
    });
    expect(await findLogs(kernel.project)).toHaveLength(1);
    const reverted = await revert(kernel, session, end ?? 0);
    expect(reverted.instructions_override).toBe("Start anew.");
    expect(await delivered(kernel.project)).toMatchObject([
      { hook: "session_before_fork", through_seq: end },
      { hook: "session_before_revert", through_seq: end },
    ]);
  });
});
