import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ApprovalList,
  type ApprovalRecord,
  ApprovalRespond,
  type ClientKey,
  type EventPayload,
  type PermissionAction,
  type PermissionEffect,
  type PermissionMode,
  SessionFork,
  type SessionId,
  SessionPermissionClear,
  SessionPermissionGet,
  SessionPermissionSet,
  SessionResume,
  SessionRevert,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createId } from "../../../kernel/src/support/create-id.ts";
import { fixtureDirectory } from "../../support/fixture-plugin.ts";
import type { Answer } from "../../support/model-server.ts";
import {
  ALLOW_ALL,
  agentDocument,
  openTestKernel,
  type TestKernel,
  type TestKernelOptions,
} from "../../support/open-test-kernel.ts";
import { findLogs, readLog } from "../../support/session-log.ts";
import type { TempProject } from "../../support/temp-project.ts";

const ASK = { primary: agentDocument({ ...ALLOW_ALL, bash: "ask", write: "ask", plugin: "ask" }) };
const DONE = { text: "done" };
const bash = (command: string) => ({ name: "bash", arguments: { command } });
const turn = (...commands: string[]): Answer => ({ calls: commands.map(bash) });

type Decision = "approve_once" | "approve_tree" | "reject" | "cancel";

function open(answers: readonly Answer[], options: TestKernelOptions = {}): Promise<TestKernel> {
  return openTestKernel({ agents: ASK, answers, ...options });
}

function listed({ client }: TestKernel, root: SessionId) {
  return client.request(ApprovalList, { root_session_id: root });
}

async function answer(
  { client }: TestKernel,
  session: SessionId,
  { request }: ApprovalRecord,
  decision: Decision = "approve_tree",
) {
  const { approval } = await client.request(ApprovalRespond, {
    session_id: session,
    approval_id: request.approval_id,
    request_revision: request.revision,
    operation_fingerprint: request.operation_fingerprint,
    client_response_id: `${decision}-${request.approval_id}` as ClientKey,
    decision,
  });
  return approval;
}

/** A run whose approvals get one answer each, in their order. */
async function run(kernel: TestKernel, session: SessionId, decisions: readonly Decision[] = []) {
  const watch = kernel.watch(session, { interactive: true });
  const runId = await kernel.start(session, "Go");
  const seen = new Set<string>();
  for (const decision of decisions) {
    const { payload } = await watch.event("approval_escalated", ({ approval_id: id }, event) => {
      return event.run_id === runId && !seen.has(id);
    });
    seen.add(payload.approval_id);
    const { approvals } = await listed(kernel, session);
    const record = approvals.find(({ request }) => request.approval_id === payload.approval_id);
    if (record === undefined) throw new Error("the approval is not listed");
    await answer(kernel, session, record, decision);
  }
  const end = await watch.end(runId);
  const events = watch.events.filter((event) => event.run_id === runId);
  const of = <T extends EventPayload["type"]>(type: T) =>
    events
      .map(({ payload }) => payload)
      .filter((payload): payload is Extract<EventPayload, { type: T }> => payload.type === type);
  return { end, events, of, finals: of("approval_finalized").map(({ decision }) => decision) };
}

async function grantOne(answers: readonly Answer[] = [], options: TestKernelOptions = {}) {
  const kernel = await open([turn("echo asked"), DONE, ...answers], options);
  const session = await kernel.createSession({ mode: "ask" });
  await run(kernel, session, ["approve_tree"]);
  return { kernel, session };
}

async function set(
  { client }: TestKernel,
  session: SessionId,
  rule: readonly [PermissionAction, string, PermissionEffect],
) {
  const [action, resource, effect] = rule;
  return client.request(SessionPermissionSet, { session_id: session, action, resource, effect });
}

async function storeOf({ stateDir }: TempProject): Promise<string> {
  const [key] = await readdir(join(stateDir, "sessions"));
  return join(stateDir, "sessions", key ?? "");
}

async function journal({ project }: TestKernel): Promise<unknown[]> {
  const path = join(await storeOf(project), "grant-invalidations.jsonl");
  const text = await readFile(path, "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

describe("a remembered approval", () => {
  test("[S-173] [S-168] [S-267] answers the same command again, alone, and says which grant it was", async () => {
    const kernel = await open([
      turn("echo asked"),
      DONE,
      turn("echo asked", "echo asked too"),
      DONE,
    ]);
    const session = await kernel.createSession({ mode: "ask" });
    const first = await run(kernel, session, ["approve_tree"]);
    const [committed] = first.of("tree_approval_grant_committed");
    expect(committed?.grant).toMatchObject({
      root_session_id: session,
      capabilities: [{ action: "bash" }],
      resources: [{ binding_lifetime: "restart_stable", boundary: "exact" }],
    });
    const grantId = committed?.grant.grant_id;
    expect(first.finals).toMatchObject([
      { status: "approved", source: "user", reason: "user_approved_tree", tree_grant_id: grantId },
    ]);
    expect((await listed(kernel, session)).tree_grants).toEqual([committed?.grant]);

    const second = await run(kernel, session, ["reject"]);
    expect(second.finals).toMatchObject([
      { source: "tree_grant", reason: "tree_grant_matched", tree_grant_id: grantId },
      { source: "user", reason: "user_rejected" },
    ]);
    expect(second.finals[1]).not.toHaveProperty("tree_grant_id");
    expect(
      second
        .of("tool_call_terminated")
        .map(({ outcome }) => outcome)
        .sort(),
    ).toEqual(["completed", "failed"]);
  });

  test("[T-069] is for the complete command, character by character", async () => {
    const written = "echo  'a b' # said";
    const kernel = await open([turn(written), DONE, turn(written, "echo 'a b' # said"), DONE]);
    const session = await kernel.createSession({ mode: "ask" });
    const first = await run(kernel, session, ["approve_tree"]);
    const [asked] = first.of("approval_requested");
    expect(asked?.request.evaluations.map(({ label }) => label)).toContain(written);
    const second = await run(kernel, session, ["reject"]);
    expect(second.finals.map(({ reason }) => reason)).toEqual([
      "tree_grant_matched",
      "user_rejected",
    ]);
  });

  test("[S-173] [T-016] is not offered for files, nor for what a plugin's process holds", async () => {
    const kernel = await open(
      [
        {
          calls: [
            { name: "write", arguments: { filePath: "new.txt", content: "new" } },
            { name: "stage", arguments: { text: "held" } },
            { name: "echo", arguments: { text: "stable" } },
          ],
        },
        DONE,
      ],
      { config: `[plugins.echo]\npath = ${JSON.stringify(fixtureDirectory("echo"))}\n` },
    );
    const session = await kernel.createSession({ mode: "ask" });
    const { of } = await run(kernel, session, ["approve_once", "approve_once", "approve_once"]);
    const offers = of("approval_requested").map(({ request }) => [
      request.tool,
      request.constraints.allow_tree_grant,
    ]);
    expect(offers).toEqual([
      ["write", false],
      ["stage", false],
      ["echo", true],
    ]);
  });

  test("[S-173] outlives the process and follows into every mode but a deny", async () => {
    const answers = Array.from({ length: 5 }, () => [turn("echo asked"), DONE]).flat();
    const { kernel, session } = await grantOne(answers);
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    const inMode = async (mode: PermissionMode) => {
      await again.client.request(SessionSetPermissionMode, { session_id: session, mode });
      return (await run(again, session)).finals.map(({ reason }) => reason);
    };
    expect(await inMode("ask")).toEqual(["tree_grant_matched"]);
    expect(await inMode("auto_approve_n")).toEqual(["tree_grant_matched"]);
    expect(await inMode("yolo")).toEqual(["tree_grant_matched"]);
    await set(again, session, ["bash", "echo *", "deny"]);
    expect(await inMode("yolo")).toEqual([]);
  });

  test("[S-173] given in one session of a tree it holds in all of them, also in one that was never opened", async () => {
    const { kernel, session } = await grantOne([turn("echo asked"), DONE]);
    await kernel.close();
    await moveGrantToChild(kernel.project, session);
    const again = await openTestKernel({ on: kernel });
    const { tree_grants: grants } = await listed(again, session);
    expect(grants).toHaveLength(1);
    await again.client.request(SessionSetPermissionMode, { session_id: session, mode: "ask" });
    const { finals } = await run(again, session);
    expect(finals).toMatchObject([
      { reason: "tree_grant_matched", tree_grant_id: grants[0]?.grant_id },
    ]);
  });

  test("[S-061] [S-173] goes with a revert behind it, and is none of a fork's", async () => {
    const { kernel, session } = await grantOne([
      turn("echo asked"),
      DONE,
      turn("echo asked"),
      DONE,
    ]);
    const { client } = kernel;
    const [log = ""] = await findLogs(kernel.project);
    const events = await readLog(log);
    const { session_id: fork } = await client.request(SessionFork, {
      session_id: session,
      through_seq: events.length,
    });
    await client.request(SessionResume, { session_id: fork });
    await client.request(SessionSetPermissionMode, { session_id: fork, mode: "ask" });
    expect((await listed(kernel, fork)).tree_grants).toEqual([]);
    expect((await run(kernel, fork, ["reject"])).finals).toMatchObject([
      { reason: "user_rejected" },
    ]);
    expect((await listed(kernel, session)).tree_grants).toHaveLength(1);
    await client.request(SessionRevert, { session_id: session, through_seq: 1 });
    expect((await listed(kernel, session)).tree_grants).toEqual([]);
    expect((await run(kernel, session, ["reject"])).finals).toMatchObject([
      { reason: "user_rejected" },
    ]);
  });

  test("[E-075] [C-067] is none for another program with the very same manifest", async () => {
    const call = { calls: [{ name: "echo", arguments: { text: "hello" } }] };
    const folder = (project: TempProject, name: string) => join(project.home, name);
    const entry = (project: TempProject, name: string) =>
      `[plugins.echo]\npath = ${JSON.stringify(folder(project, name))}\n`;
    const kernel = await open([call, DONE, call, DONE, call, DONE], {
      prepare: async (project) => {
        const config = await readFile(join(project.stateDir, "config.toml"), "utf8");
        for (const name of ["one", "two"]) {
          await cp(fixtureDirectory("echo"), folder(project, name), { recursive: true });
        }
        await project.writeState("config.toml", `${config}${entry(project, "one")}`);
      },
    });
    const session = await kernel.createSession({ mode: "ask" });
    await run(kernel, session, ["approve_tree"]);
    expect((await run(kernel, session)).finals[0]?.reason).toBe("tree_grant_matched");
    await kernel.close();
    const { project } = kernel;
    const config = await readFile(join(project.stateDir, "config.toml"), "utf8");
    await project.writeState(
      "config.toml",
      config.replace(entry(project, "one"), entry(project, "two")),
    );
    const again = await openTestKernel({ on: kernel });
    await again.client.request(SessionSetPermissionMode, { session_id: session, mode: "ask" });
    const { finals } = await run(again, session, ["reject"]);
    expect(finals).toMatchObject([{ reason: "user_rejected" }]);
  });

  test("[S-176] does not lift the guard against repetition", async () => {
    const { kernel, session } = await grantOne([
      turn("echo asked", "echo asked", "echo asked", "echo asked"),
      DONE,
    ]);
    const { finals } = await run(kernel, session);
    expect(finals.map(({ reason }) => reason)).toEqual([
      "tree_grant_matched",
      "tree_grant_matched",
      "tree_grant_matched",
      "doom_loop_detected",
    ]);
  });
});

describe("an answer that is sent again", () => {
  test("[S-169] is the same answer after a restart, and gives no second grant", async () => {
    const { kernel, session } = await grantOne();
    const [record] = (await listed(kernel, session)).approvals;
    if (record === undefined) throw new Error("the approval is not listed");
    const first = await answer(kernel, session, record);
    expect(first).toEqual(record);
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    expect(await answer(again, session, record)).toEqual(first);
    await expect(
      again.client.request(ApprovalRespond, {
        session_id: session,
        approval_id: record.request.approval_id,
        request_revision: 1,
        operation_fingerprint: record.request.operation_fingerprint,
        client_response_id: `approve_tree-${record.request.approval_id}` as ClientKey,
        decision: "reject",
      }),
    ).rejects.toMatchObject({ code: "idempotency_conflict" });
    expect((await listed(again, session)).tree_grants).toHaveLength(1);
  });

  test("[S-169] from many clients at once one wins, and there is one grant", async () => {
    const kernel = await open([turn("echo asked"), DONE]);
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Go");
    await watch.event("approval_escalated");
    const [record] = (await listed(kernel, session)).approvals;
    if (record === undefined) throw new Error("no approval waits");
    const decisions: Decision[] = ["approve_tree", "reject", "approve_once", "cancel"];
    const answers = await Promise.allSettled(
      decisions.map((decision) => answer(kernel, session, record, decision)),
    );
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    await watch.end(runId);
    expect(watch.payloads("approval_finalized")).toHaveLength(1);
    expect((await listed(kernel, session)).tree_grants).toHaveLength(1);
  });

  test("[S-174] beside a tightening it is refused or taken back, never left over", async () => {
    const kernel = await open([turn("echo asked"), DONE]);
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Go");
    await watch.event("approval_escalated");
    const [record] = (await listed(kernel, session)).approvals;
    if (record === undefined) throw new Error("no approval waits");
    await Promise.allSettled([
      answer(kernel, session, record),
      set(kernel, session, ["bash", "git *", "deny"]),
    ]);
    expect((await listed(kernel, session)).tree_grants).toEqual([]);
    await answer(kernel, session, record, "approve_once").catch(() => undefined);
    await watch.end(runId);
  });
});

describe("rules that change", () => {
  test("[S-170] [D-034] an answer for the whole tree is refused after a change, one for the call is not", async () => {
    const kernel = await open([turn("echo asked"), DONE]);
    const session = await kernel.createSession({ mode: "ask" });
    const watch = kernel.watch(session, { interactive: true });
    const runId = await kernel.start(session, "Go");
    await watch.event("approval_escalated");
    await set(kernel, session, ["webfetch", "*", "allow"]);
    const [record] = (await listed(kernel, session)).approvals;
    if (record === undefined) throw new Error("no approval waits");
    await expect(answer(kernel, session, record)).rejects.toMatchObject({
      code: "operation_changed",
    });
    await answer(kernel, session, record, "approve_once");
    expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
    expect(watch.types).not.toContain("tree_approval_grant_committed");
    expect(watch.payloads("approval_finalized")).toMatchObject([
      { decision: { reason: "user_approved_once" } },
    ]);
  });

  test("[S-174] a tightening takes the action's grants back, in the journal and for good", async () => {
    const { kernel, session } = await grantOne([
      turn("echo asked"),
      DONE,
      turn("echo asked"),
      DONE,
    ]);
    const [grant] = (await listed(kernel, session)).tree_grants;
    await set(kernel, session, ["webfetch", "*", "deny"]);
    await set(kernel, session, ["bash", "ls *", "allow"]);
    expect(await journal(kernel)).toEqual([]);
    await set(kernel, session, ["bash", "git *", "deny"]);
    expect(await journal(kernel)).toEqual([
      {
        seq: 1,
        timestamp: expect.any(String) as unknown,
        root_session_id: session,
        grant_ids: [grant?.grant_id],
        resource_digests: grant?.resources.map((resource) => resource.binding_digest),
      },
    ]);
    expect((await listed(kernel, session)).tree_grants).toEqual([]);
    await kernel.client.request(SessionPermissionClear, {
      session_id: session,
      action: "bash",
      resource: "git *",
    });
    expect((await run(kernel, session, ["reject"])).finals).toMatchObject([
      { reason: "user_rejected" },
    ]);
    await kernel.close();
    const again = await openTestKernel({ on: kernel });
    expect((await listed(again, session)).tree_grants).toEqual([]);
    await again.client.request(SessionSetPermissionMode, { session_id: session, mode: "ask" });
    expect((await run(again, session, ["reject"])).finals).toMatchObject([
      { reason: "user_rejected" },
    ]);
    expect(await journal(again)).toHaveLength(1);
  });

  test("[S-174] a child's grants fall with a tightening in the root, before the child was ever opened", async () => {
    const { kernel, session } = await grantOne();
    await kernel.close();
    await moveGrantToChild(kernel.project, session);
    const again = await openTestKernel({ on: kernel });
    await set(again, session, ["bash", "git *", "deny"]);
    expect(await journal(again)).toHaveLength(1);
    expect((await listed(again, session)).tree_grants).toEqual([]);
  });

  test("[S-174] [S-175] without the journal the rules stay as they are, and with it again they change", async () => {
    const { kernel, session } = await grantOne();
    const path = join(await storeOf(kernel.project), "grant-invalidations.jsonl");
    await mkdir(path);
    const before = await kernel.client.request(SessionPermissionGet, { session_id: session });
    await expect(set(kernel, session, ["bash", "git *", "deny"])).rejects.toMatchObject({
      code: "storage_failed",
    });
    expect(await kernel.client.request(SessionPermissionGet, { session_id: session })).toEqual(
      before,
    );
    expect((await listed(kernel, session)).tree_grants).toHaveLength(1);
    const [log = ""] = await findLogs(kernel.project);
    expect((await readLog(log)).map(({ payload }) => payload.type)).not.toContain(
      "session_permission_overlay_set",
    );
    await rm(path, { recursive: true });
    await set(kernel, session, ["bash", "git *", "deny"]);
    expect(await journal(kernel)).toHaveLength(1);
  });

  test("[S-057] with a damaged journal no grant counts, and everything else goes on", async () => {
    const { kernel, session } = await grantOne([turn("echo asked"), DONE]);
    await kernel.close();
    const path = join(await storeOf(kernel.project), "grant-invalidations.jsonl");
    await writeFile(path, "damaged\n");
    const again = await openTestKernel({ on: kernel });
    await again.client.request(SessionSetPermissionMode, { session_id: session, mode: "ask" });
    const { finals, end } = await run(again, session, ["approve_once"]);
    expect(finals).toMatchObject([{ reason: "user_approved_once" }]);
    expect(end.type).toBe("run_completed");
    await expect(set(again, session, ["bash", "git *", "deny"])).rejects.toMatchObject({
      code: "storage_failed",
      message: expect.stringContaining("line 1") as unknown,
    });
    expect(again.logged).toContainEqual(
      expect.objectContaining({ message: "remembered approvals cannot be used for now" }),
    );
    expect(await readFile(path, "utf8")).toBe("damaged\n");
  });
});

describe("the session's own rules", () => {
  test("a rule is set, replaced and removed, and what changes nothing leaves no trace", async () => {
    const kernel = await open([]);
    const session = await kernel.createSession();
    const watch = kernel.watch(session);
    const clear = (resource: string) =>
      kernel.client.request(SessionPermissionClear, {
        session_id: session,
        action: "bash",
        resource,
      });
    const initial = await kernel.client.request(SessionPermissionGet, { session_id: session });
    await clear("git *");
    await set(kernel, session, ["bash", "git *", "allow"]);
    await set(kernel, session, ["bash", "git *", "allow"]);
    const { permissions } = await set(kernel, session, ["bash", "git *", "deny"]);
    expect(permissions.find(({ action }) => action === "bash")?.patterns).toEqual([
      { resource: "git *", effect: "deny", source: "session_overlay" },
    ]);
    expect((await clear("git *")).permissions).toEqual(initial.permissions);
    await clear("git *");
    await watch.event(
      "session_permission_overlay_set",
      ({ overlay }) => overlay.rules.length === 0,
    );
    expect(watch.payloads("session_permission_overlay_set").map(({ overlay }) => overlay)).toEqual([
      { rules: [{ action: "bash", resource: "git *", effect: "allow", source: "user" }] },
      { rules: [{ action: "bash", resource: "git *", effect: "deny", source: "user" }] },
      { rules: [] },
    ]);
  });
});

/** Rewrites the store as if a child session of the tree had got the grant, and the root nothing. */
async function moveGrantToChild(project: TempProject, root: SessionId): Promise<void> {
  const [log = ""] = await findLogs(project);
  const events = await readLog(log);
  const created = events[0];
  const granted = events.find(({ payload }) => payload.type === "tree_approval_grant_committed");
  if (created?.payload.type !== "session_created" || granted === undefined) {
    throw new Error("there is no grant to move");
  }
  await writeLog(
    log,
    events.filter((event) => event !== granted),
  );
  const child = createId<SessionId>();
  const folder = join(log, "..", "subagents", child);
  await mkdir(folder, { recursive: true });
  const origin = {
    type: "delegated" as const,
    root_session_id: root,
    parent_session_id: root,
    parent_run_id: granted.run_id ?? "",
    parent_tool_call_id: createId<string>(),
    invocation_id: "one",
    depth: 1,
  };
  await writeLog(join(folder, "events.jsonl"), [
    { ...created, session_id: child, payload: { ...created.payload, origin } },
    { ...granted, session_id: child, seq: 2 },
  ]);
}

function writeLog(path: string, events: readonly object[]): Promise<void> {
  return writeFile(path, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
}
