import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  ApprovalRespond,
  type ClientKey,
  type EventPayloadOf,
  isCookieError,
  RunCancel,
  type RunId,
  RunRecallSteer,
  type RunSelection,
  RunStart,
  RunSteer,
  SessionCompact,
  SessionCreate,
  SessionFork,
  type SessionId,
  SessionPermissionSet,
  SessionRename,
  SessionRevert,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { type ModelServer, pick, type RecordedRequest } from "../../support/model-server.ts";
import { agentDocument } from "../../support/open-test-kernel.ts";

/**
 * Two parallel commands and a file, an approval for each command, one of them for the whole tree and later taken back,
 * steering, a long command that is cancelled, and a summary.
 */
export const SCRIPT_AGENTS = { primary: agentDocument({ read: "allow", bash: "ask" }) };
const SELECTION: RunSelection = {
  agent: "primary",
  model: { model: "custom.test/scripted", variant: null },
};
/** Approved for the tree. */
export const GRANTED_COMMAND = "echo a >> marks; seq 1 3000";
/** Asked for by a run that is told to ask. */
export const ASKED_COMMAND = "true";
export const SUMMARY = "They worked.";
const MAX_ANSWERS = 20;
const TERMINAL = new Set(["run_completed", "run_failed", "run_cancelled", "run_interrupted"]);

/** Something that an answer of the kernel has promised of the log. */
export interface Promised {
  readonly what: string;
  isIn(events: readonly StoredEvent[]): boolean;
}

export interface Fork {
  readonly sessionId: SessionId;
  readonly throughSeq: number;
}

/** One client's session, and everything that the client was told of it. */
export class ScriptedSession {
  readonly seen = new Map<number, StoredEvent>();
  readonly promised: Promised[] = [];
  readonly forks: Fork[] = [];
  readonly refused: { readonly what: string; readonly error: unknown; isIn: Promised["isIn"] }[] =
    [];
  /** Called with each thing that the client learns. */
  onLearned: () => void = () => undefined;
  sessionId: SessionId | undefined;
  /** What became of the answer that was to hold for the tree. */
  grant: "none" | "given" | "perhaps" | "taken back" = "none";
  /** The type of the terminal event that was seen last. */
  lastEnd: string | undefined;
  readonly #client: CookieClient;
  readonly #gates: ScriptedGates;
  #requests = new Map<string, number>();
  #wanted = new Map<string, () => void>();
  #ended = new Set<string>();
  #cancelled = new Set<string>();
  #runs = 0;

  constructor(client: CookieClient, gates: ScriptedGates) {
    this.#client = client;
    this.#gates = gates;
  }

  /** Goes through the script to its end or to that of the connection; a request that fails is noted. */
  async play(): Promise<void> {
    await this.create();
    await this.overlay("buffered.txt", false);
    await this.say("Work.");
    await this.overlay("note.txt");
    await this.tighten();
    await this.say("Wait.");
    await this.say("Say.");
    await this.rename("A name");
    await this.revert(this.#seqOf("run_completed"));
    await this.compact();
    await this.say("Say.");
    await this.fork(this.#seqOf("run_cancelled"));
  }

  async create(): Promise<void> {
    const created = await this.#try("create", () =>
      this.#client.request(SessionCreate, { selection: SELECTION }),
    );
    this.sessionId = created?.session.session_id;
  }

  /** Starts a run, does what its events ask for, and waits for its end. */
  async say(input: string): Promise<void> {
    const sessionId = this.sessionId;
    if (sessionId === undefined) return;
    const key = `run-${++this.#runs}` as ClientKey;
    const runId = await this.#promise(
      `start ${key}`,
      async () => {
        const request = { session_id: sessionId, client_run_id: key, selection: SELECTION, input };
        return (await this.#client.request(RunStart, request)).run_id;
      },
      (events) =>
        payloads(events, "run_started").some(({ client_run_id }) => client_run_id === key) &&
        payloads(events, "user_input_submitted").some((said) => said.input === input),
    );
    if (runId === undefined) return;
    const followed = this.#follow(sessionId);
    await Promise.race([followed, this.#end(runId)]);
  }

  async overlay(resource: string, isStored = true): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined) return;
    const rule = { action: "write", resource, effect: "deny" } as const;
    const set = () => this.#client.request(SessionPermissionSet, { session_id, ...rule });
    if (!isStored) await this.#try(`overlay ${resource}`, set);
    else await this.#promise(`overlay ${resource}`, set, hasRule(resource));
  }

  /** A stricter rule for commands, with which no remembered answer about one holds any more. */
  async tighten(resource = "never-*"): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined) return;
    if (this.grant === "given") this.#learnOfGrant("perhaps");
    const rule = { action: "bash", resource, effect: "deny" } as const;
    const set = () => this.#client.request(SessionPermissionSet, { session_id, ...rule });
    const answer = await this.#promise(`tighten ${resource}`, set, hasRule(resource));
    if (answer !== undefined) this.#learnOfGrant("taken back");
  }

  async compact(): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined) return;
    const ask = () => this.#client.request(SessionCompact, { session_id, focus: null });
    const isIn: Promised["isIn"] = (events) =>
      payloads(events, "context_checkpoint_committed").length > 0;
    const answer = await this.#try("compact", ask, isIn);
    if (answer?.compacted !== true) return;
    this.promised.push({ what: "compact", isIn });
    this.onLearned();
  }

  async rename(title: string): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined) return;
    const client_rename_id = `rename-${title}` as ClientKey;
    const change = { type: "set" as const, title };
    await this.#promise(
      `rename ${title}`,
      () => this.#client.request(SessionRename, { session_id, client_rename_id, change }),
      (events) =>
        payloads(events, "session_title_committed").some(
          (committed) => "title" in committed.change && committed.change.title === title,
        ),
    );
  }

  async revert(through_seq: number | undefined): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined || through_seq === undefined) return;
    await this.#promise(
      `revert ${through_seq}`,
      () => this.#client.request(SessionRevert, { session_id, through_seq }),
      (events) =>
        payloads(events, "session_reverted").some((marker) => marker.through_seq === through_seq),
    );
  }

  async fork(through_seq: number | undefined): Promise<void> {
    const session_id = this.sessionId;
    if (session_id === undefined || through_seq === undefined) return;
    const ask = () => this.#client.request(SessionFork, { session_id, through_seq });
    const made = await this.#try(`fork ${through_seq}`, ask);
    if (made === undefined) return;
    this.forks.push({ sessionId: made.session_id, throughSeq: through_seq });
    this.onLearned();
  }

  #learnOfGrant(grant: ScriptedSession["grant"]): void {
    this.grant = grant;
    this.onLearned();
  }

  #seqOf(type: string): number | undefined {
    return [...this.seen.values()].find(({ payload }) => payload.type === type)?.seq;
  }

  #end(runId: RunId): Promise<void> {
    if (this.#ended.has(runId)) return Promise.resolve();
    return new Promise((resolve) => this.#wanted.set(runId, resolve));
  }

  /** Ends with the connection or when the session cannot be read any more. */
  async #follow(sessionId: SessionId): Promise<void> {
    try {
      const cursor = Math.max(0, ...this.seen.keys());
      for await (const news of this.#client.subscribe(sessionId, { cursor, interactive: true })) {
        if (news.type === "output" && Buffer.from(news.data, "base64").toString().includes("up")) {
          await this.#cancel();
        }
        if (news.type !== "event") continue;
        this.seen.set(news.event.seq, news.event);
        this.onLearned();
        this.#react(news.event).catch(() => undefined);
      }
    } catch (error) {
      if (!isCookieError(error)) throw error;
    }
  }

  async #react({ payload, run_id: runId }: StoredEvent): Promise<void> {
    if (runId === null) return;
    if (TERMINAL.has(payload.type)) {
      this.#ended.add(runId);
      this.lastEnd = payload.type;
      this.#wanted.get(runId)?.();
    }
    if (payload.type === "approval_escalated") await this.#approve(payload.approval_id);
    if (payload.type === "model_request_prepared") {
      const count = (this.#requests.get(runId) ?? 0) + 1;
      this.#requests.set(runId, count);
      if (count === 2) await this.#steer(runId);
    }
  }

  async #approve(approval_id: string): Promise<void> {
    const asked = payloads([...this.seen.values()], "approval_requested");
    const request = asked.find(({ request: { approval_id: id } }) => id === approval_id)?.request;
    if (request === undefined || this.sessionId === undefined) return;
    const { revision: request_revision, operation_fingerprint, evaluations } = request;
    const isForTree =
      this.grant === "none" && evaluations.some(({ label }) => label === GRANTED_COMMAND);
    const client_response_id = `answer-${approval_id}` as ClientKey;
    const answer = {
      session_id: this.sessionId,
      approval_id: request.approval_id,
      request_revision,
      operation_fingerprint,
      client_response_id,
      decision: isForTree ? ("approve_tree" as const) : ("approve_once" as const),
    };
    const isIn: Promised["isIn"] = (events) =>
      payloads(events, "approval_user_decision_recorded").some(
        (recorded) => recorded.client_response_id === client_response_id,
      );
    for (let tries = 0; tries < MAX_ANSWERS; tries += 1) {
      try {
        await this.#client.request(ApprovalRespond, answer);
      } catch (error) {
        // a person who reads that the disk was full answers again
        if (isCookieError(error, "storage_failed")) continue;
        this.refused.push({ what: `approve ${approval_id}`, error, isIn: () => false });
        return;
      }
      this.promised.push({ what: `approve ${approval_id}`, isIn });
      if (isForTree) this.grant = "given";
      this.onLearned();
      return;
    }
  }

  async #steer(runId: RunId): Promise<void> {
    const [first, second] = [`One in ${runId}.`, `Two in ${runId}.`];
    for (const input of [first, second]) {
      await this.#promise(
        `steer ${input}`,
        () => this.#client.request(RunSteer, { run_id: runId, input }),
        (events) => payloads(events, "user_input_admitted").some((said) => said.input === input),
      );
    }
    await this.#promise(
      "recall",
      () => this.#client.request(RunRecallSteer, { run_id: runId }),
      (events) => payloads(events, "user_input_recalled").some(({ input }) => input === second),
    );
    this.#gates.open();
  }

  async #cancel(): Promise<void> {
    const runId = [...this.seen.values()].findLast(
      ({ payload }) => payload.type === "run_started",
    )?.run_id;
    if (runId === null || runId === undefined || this.#cancelled.has(runId)) return;
    this.#cancelled.add(runId);
    await this.#try("cancel", () => this.#client.request(RunCancel, { run_id: runId }));
  }

  async #promise<T>(
    what: string,
    ask: () => Promise<T>,
    isIn: Promised["isIn"],
  ): Promise<T | undefined> {
    const answer = await this.#try(what, ask, isIn);
    if (answer === undefined) return undefined;
    this.promised.push({ what, isIn });
    this.onLearned();
    return answer;
  }

  async #try<T>(
    what: string,
    ask: () => Promise<T>,
    isIn: Promised["isIn"] = () => false,
  ): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      this.refused.push({ what, error, isIn });
      return undefined;
    }
  }
}

/** What holds a model turn back until the client has steered. */
export interface ScriptedGates {
  open(): void;
}

/** Lets a server answer as the script needs, whatever the kernel that asks has been through. */
export function scriptAnswers(server: ModelServer): ScriptedGates {
  const { promise: until, resolve: open } = createDeferred();
  server.answerAsides("context_compaction", { text: SUMMARY });
  server.otherwise((request) => {
    const { said, results } = newest(request);
    if (said === "Work." && results === 0) {
      return {
        reasoning: "Hm.",
        text: ["Three ", "at once."],
        calls: [
          command(GRANTED_COMMAND),
          command("echo b >> marks"),
          { name: "read", arguments: { filePath: "note.txt" } },
        ],
      };
    }
    if (said === "Work.") return { text: ["Half ", "done."], until };
    if (said === "Wait." && results === 0) {
      return { calls: [command("echo c >> marks; echo up; exec sleep 600")] };
    }
    if (said === "Print." && results === 0) return { calls: [command("echo printed")] };
    if (said === "Ask." && results === 0) return { calls: [command(ASKED_COMMAND)] };
    const [, filePath] = /^Read (artifact:.+)$/.exec(said) ?? [];
    if (filePath !== undefined && results === 0) {
      return { calls: [{ name: "read", arguments: { filePath } }] };
    }
    return { text: "Done." };
  });
  return { open };
}

function createDeferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function command(line: string) {
  return { name: "bash", arguments: { command: line } };
}

/** What was said last, and how many results came since. */
function newest(request: RecordedRequest): { said: string; results: number } {
  const messages = pick(request.body, "messages");
  const list: unknown[] = Array.isArray(messages) ? messages : [];
  const at = list.findLastIndex((message) => pick(message, "role") === "user");
  const content = pick(list[at], "content");
  const said = typeof content === "string" ? content : String(pick(content, -1, "text"));
  const results = list.slice(at).filter((message) => pick(message, "role") === "tool").length;
  return { said, results };
}

function hasRule(resource: string): Promised["isIn"] {
  return (events) =>
    payloads(events, "session_permission_overlay_set").some(({ overlay }) =>
      overlay.rules.some((each) => each.resource === resource),
    );
}

export function payloads<T extends StoredEvent["payload"]["type"]>(
  events: readonly StoredEvent[],
  type: T,
): EventPayloadOf<T>[] {
  return events.flatMap(({ payload }) =>
    payload.type === type ? [payload as EventPayloadOf<T>] : [],
  );
}
