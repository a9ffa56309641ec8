import {
  type ApprovalRecord,
  type ApprovalRespond,
  type ClientKey,
  CookieError,
  type EffectivePermission,
  type EventPayload,
  type OverlayRule,
  type ParamsOf,
  type PermissionExplanation,
  type PermissionMode,
  type PermissionRule,
  type RunId,
  type RunSelection,
  type SessionId,
  type SessionMeta,
  type SessionPermissionExplain,
  type TitleRequest,
  type UsageSum,
} from "@cookie-agent/sdk/protocol";
import { type EventLog, requireSeq } from "../event/event-log.ts";
import type { ApprovalGate } from "../permission/approval-gate.ts";
import type { Policy } from "../permission/compile-rules.ts";
import { effectivePermissions } from "../permission/effective-permissions.ts";
import type { TreeGrants } from "../permission/tree-grants.ts";
import { admitRun, openingEvents } from "../run/admit-run.ts";
import { recallSelection } from "../run/resolve-agent.ts";
import { describeRunError } from "../run/run-loop.ts";
import { sessionForeign } from "../store/session-foreign.ts";
import type { StoredMetadata } from "../store/session-store.ts";
import { canonicalJson } from "../support/canonical-json.ts";
import { withDeadline } from "../support/deadline.ts";
import { sha256Hex } from "../support/digest.ts";
import { Mailbox } from "../support/mailbox.ts";
import type { UsageCells } from "../usage/usage-cells.ts";
import { asksAboutAdmission, asksAboutInput, passAdmission, passInput } from "./admission-hooks.ts";
import { BarrierCommands } from "./barrier-commands.ts";
import { passFork, passRevert } from "./branch-hooks.ts";
import { changeRules } from "./change-rules.ts";
import type { CompactedSession } from "./compact-session.ts";
import { describeSession } from "./describe-session.ts";
import { insertRule, removeRule } from "./permission-overlay.ts";
import { titleChange } from "./rename-session.ts";
import { RunSlot } from "./run-slot.ts";
import { SessionInputs } from "./session-inputs.ts";
import type { SessionLog } from "./session-log.ts";
import type { SessionParts } from "./session-parts.ts";
import type { SessionPresence } from "./session-presence.ts";
import type { SessionServices } from "./session-services.ts";
import type { SessionState } from "./session-state.ts";

const NO_RULES: readonly PermissionRule[] = [];

/** How long a closing session waits for its run's last word (S-094). */
const CLOSE_TIMEOUT_MS = 10_000;

/** What a subscription gets: stored events first, then the live tail (D-060). */
export type EventSubscription = Awaited<ReturnType<EventLog["subscribe"]>>;

/**
 * The one writer of a session (S-006). Commands that change it pass one at a time through its mailbox; a run works
 * beside the mailbox, so that approvals, steering and cancellation reach it while it runs.
 */
export class SessionActor {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  /** What people have granted to its tree. */
  readonly treeGrants: TreeGrants;
  /** What people say while a run runs; it does not wait for the mailbox. */
  readonly inputs: SessionInputs;
  readonly #parts: SessionParts & { readonly closing: AbortSignal };
  readonly #closing = new AbortController();
  readonly #services: SessionServices;
  readonly #log: SessionLog;
  readonly #state: SessionState;
  readonly #presence: SessionPresence;
  readonly #gate: ApprovalGate;
  #knownPolicy: Policy | undefined;
  readonly #mailbox = new Mailbox();
  readonly #barriers = new BarrierCommands();
  readonly #slot: RunSlot;
  #quiet: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    this.sessionId = parts.sessionId;
    this.rootSessionId = parts.rootSessionId;
    this.treeGrants = parts.treeGrants;
    this.#parts = { ...parts, closing: this.#closing.signal };
    this.#services = parts.services;
    this.#log = parts.log;
    this.#state = parts.state;
    this.#presence = parts.presence;
    this.#gate = parts.gate;
    this.inputs = new SessionInputs({
      ...this.#parts,
      activeRun: () => this.#slot.run,
    });
    this.#slot = new RunSlot({
      ...parts,
      inputs: this.inputs,
      policy: () => this.#policy(),
      onFree: () => this.#saveMetadata(),
    });
  }

  get writable(): boolean {
    return this.#log.events.writable;
  }

  /** False as long as it is in memory only. */
  get published(): boolean {
    return this.#log.events.published;
  }

  get activeRunId(): RunId | null {
    return this.#slot.run?.runId ?? null;
  }

  meta(): SessionMeta {
    return describeSession(this.sessionId, this.#state, this.#log.events.skippedEvents);
  }

  /** What its visible branch used (S 13). */
  get usage(): UsageSum {
    return this.#state.usage;
  }

  /** What it has really used. */
  get spent(): UsageCells {
    return this.#parts.ledger.cells;
  }

  /** The agent and model that a next run would use (S-128). */
  nextSelection(): RunSelection | null {
    const { lastAgent: agent, lastModel: model, creationSelection } = this.#state;
    const used = agent === null || model === null ? creationSelection : { agent, model };
    return recallSelection(this.#services.facts, used);
  }

  /** Writes the terminal events that a crash has left open; part of adoption (S-085, S-096). */
  settle(): Promise<void> {
    return this.#mailbox.run(() => this.#slot.settle());
  }

  /** Admits a run and returns once its start is durable; the run itself goes on by itself (S 5.1). */
  startRun(request: {
    clientRunId: ClientKey;
    selection: RunSelection;
    input: string;
    maxTurns: number | null;
  }): Promise<RunId> {
    return this.#mailbox.run(async () => {
      await this.#services.ready();
      this.#requireWritable();
      const requestDigest = sha256Hex(
        canonicalJson({ input: request.input, selection: request.selection }),
      );
      const known = this.#state.runs.get(request.clientRunId);
      if (known !== undefined) {
        if (known.requestDigest === requestDigest) return known.runId;
        throw new CookieError(
          "idempotency_conflict",
          "this client_run_id was used before with another input or selection",
          { data: { session_id: this.sessionId, client_run_id: request.clientRunId } },
        );
      }
      await this.#requireIdle();
      let { input } = request;
      if (asksAboutInput(this.#parts)) input = await passInput(this.#parts, input);
      let run = await admitRun(this.#services.facts, request.selection, this.#state);
      if (asksAboutAdmission(this.#parts)) run = await passAdmission(this.#parts, run, input);
      await this.#slot.settle();
      const documents = await this.#services.contextDocuments();
      await this.#log.append(
        openingEvents(run, {
          ...request,
          input,
          originalInput: request.input,
          requestDigest,
          inputThroughSeq: this.#state.inputThroughSeq,
          documents,
        }),
      );
      this.#slot.launch(run, request.maxTurns);
      return run.runId;
    });
  }

  /** Titles the session (S-033). */
  rename(request: { clientRenameId: string; change: TitleRequest }): Promise<void> {
    return this.#mailbox.run(async () => {
      this.#requireWritable();
      const change = titleChange(this.#state.renames, this.sessionId, request);
      if (change === null) return;
      const { inputThroughSeq: input_through_seq } = this.#state;
      await this.record([{ type: "session_title_committed", change, input_through_seq }]);
    });
  }

  /**
   * Lets what came after an event no longer count (S-229); yields what plugins want the next input to say. Rejects
   * with `session_running`, `invalid_sequence` or `operation_blocked`, and then changes nothing.
   */
  revert(throughSeq: number): Promise<string | null> {
    return this.#barriers.run("revert", () =>
      this.#mailbox.run(async () => {
        this.#requireWritable();
        await this.#requireIdle();
        requireSeq(throughSeq, this.#log.events.tipSeq);
        const instructions = await passRevert(this.#parts, throughSeq);
        await this.#slot.giveUpTitle();
        await this.#slot.settle();
        await this.treeGrants.exclusively(() => this.#log.events.revert(throughSeq));
        await this.#saveMetadata();
        return instructions;
      }),
    );
  }

  /** Whether the session may be forked at an event; rejects with `invalid_sequence` or `operation_blocked`. */
  async passFork(throughSeq: number): Promise<void> {
    const { events } = this.#log;
    if (!events.published) {
      throw new CookieError("invalid_sequence", "nothing was said in this session yet");
    }
    requireSeq(throughSeq, events.tipSeq);
    await passFork(this.#parts, throughSeq);
  }

  /** Asks the run to stop; idempotent. True while the run had not ended by itself (S-148). */
  cancel(runId: RunId, reason: string | null): boolean {
    return this.#slot.cancel(runId, reason);
  }

  /** Summarizes the conversation of an idle session; `signal` stops it (S-224). */
  compact(focus: string | null, signal: AbortSignal): Promise<CompactedSession> {
    return this.#barriers.run("compact", () =>
      this.#mailbox.run(async () => {
        await this.#services.ready();
        this.#requireWritable();
        await this.#requireIdle();
        await this.#slot.settle();
        const { compactSession } = await import("./compact-session.ts");
        const selection = this.nextSelection();
        const wanted = { selection, focus, policy: () => this.#policy() };
        const stop = AbortSignal.any([signal, this.#closing.signal]);
        const compacted = await compactSession(this.#parts, wanted, stop);
        await this.#saveMetadata();
        return compacted;
      }),
    );
  }

  setMode(mode: PermissionMode): void {
    this.#presence.mode = mode;
  }

  get mode(): PermissionMode {
    return this.#presence.mode;
  }

  permissions(): EffectivePermission[] {
    return effectivePermissions(this.#policy());
  }

  /** Inserts or replaces one overlay rule; the event carries the whole overlay (S 6.11). */
  setOverlayRule(rule: OverlayRule): Promise<void> {
    return this.#mailbox.run(async () => {
      this.#requireWritable();
      const overlay = insertRule(this.#state.overlay, rule);
      if (overlay === this.#state.overlay) return;
      await changeRules(this.#parts, { policy: this.#policy(), rule, overlay });
    });
  }

  /** Removes the overlay rule for exactly this action and resource, if there is one. */
  clearOverlayRule(rule: Pick<OverlayRule, "action" | "resource">): Promise<void> {
    return this.#mailbox.run(async () => {
      this.#requireWritable();
      const overlay = removeRule(this.#state.overlay, rule);
      if (overlay === this.#state.overlay) return;
      await changeRules(this.#parts, { policy: this.#policy(), rule, overlay });
    });
  }

  /** Which rules would decide about a call, as a next run would prepare it; nothing is called or recorded (S 6.3). */
  async explain(params: ParamsOf<typeof SessionPermissionExplain>): Promise<PermissionExplanation> {
    await this.#services.ready();
    const selection = params.selection ?? this.nextSelection();
    if (selection === null) {
      throw new CookieError("no_runnable_model", "no agent can run; select one and a model");
    }
    const { explainCall } = await import("../run/explain-call.ts");
    return explainCall({
      facts: this.#services.facts,
      stages: this.#services.stages,
      sessionId: this.sessionId,
      treeGrants: this.treeGrants,
      selection,
      overlay: this.#state.overlay,
      flags: params.rules ?? [],
      mode: params.mode ?? this.mode,
      tool: params.tool,
      args: params.arguments,
    });
  }

  approvals(status?: ApprovalRecord["status"]): ApprovalRecord[] {
    return this.#gate.list(status);
  }

  respond(params: ParamsOf<typeof ApprovalRespond>): Promise<ApprovalRecord> {
    return this.#gate.respond(params);
  }

  /** Stored events after `cursor` and, for a session of ours, the live tail. */
  subscribe(request: { cursor: number; limit?: number }): Promise<EventSubscription> {
    if (this.#log.failure !== null) return Promise.reject(this.#log.failure);
    return this.#log.events.subscribe({ ...request, live: true });
  }

  /** An interactive client can answer approvals and type; while one is attached nothing expires (S-270). */
  attachInteractive(): () => void {
    this.#presence.attach();
    this.#gate.attachmentChanged(true);
    let attached = true;
    return () => {
      if (!attached) return;
      attached = false;
      this.#presence.detach();
      if (this.#presence.attended) return;
      this.#gate.attachmentChanged(false);
      this.inputs.endStdin();
    };
  }

  /** Adds what is said of the session outside its runs. Does not wait for its commands, which may wait for this. */
  async record(payloads: readonly EventPayload[]): Promise<void> {
    this.#requireWritable();
    await this.#log.append(payloads.map((payload) => ({ payload, runId: null })));
  }

  /** Ends the run with a record; a run still wedged at the bound is left for recovery (S-094). Idempotent. */
  quiesce(): Promise<void> {
    this.#quiet ??= withDeadline(
      this.#endWork(),
      CLOSE_TIMEOUT_MS,
      "the run did not end in time",
    ).catch((error: unknown) => {
      const { message } = describeRunError(error);
      this.#services.logger.log("warn", "a session was closed over its run", { error: message });
    });
    return this.#quiet;
  }

  /** When the last run ended, in epoch milliseconds; null while something of the session is open or waits (S-102). */
  get idleSinceMs(): number | null {
    const { lastRunEnd, openApprovals, openCalls, pendingInputs } = this.#state;
    const isOpen = this.#slot.run !== null || openApprovals.size > 0 || openCalls.size > 0;
    if (lastRunEnd === "" || isOpen || pendingInputs.length > 0) return null;
    if (this.#barriers.isCompacting) return null;
    return this.#mailbox.waiting > 0 ? null : Date.parse(lastRunEnd);
  }

  /**
   * A barrier: when nothing runs and nothing waits behind it, the session takes no command any more, `then` is called
   * at once, and `close` is to follow. False when it goes on as before.
   */
  retire(then: () => void): Promise<boolean> {
    return this.#mailbox.run(() => {
      if (this.#slot.run !== null || this.#mailbox.waiting > 0) return false;
      void this.#mailbox.close();
      then();
      return true;
    });
  }

  /** Ends the run as `quiesce` does and closes the log. */
  async close(): Promise<void> {
    await this.quiesce();
    const { events } = this.#log;
    await this.#saveMetadata();
    await events.close();
  }

  /** The command that is being served may still start a run, so that is cancelled too. */
  async #endWork(): Promise<void> {
    this.#closing.abort();
    const served = this.#mailbox.close();
    await this.#slot.clear("shutdown");
    await served;
    await this.#slot.clear("shutdown");
  }

  /** The rules as they stand now: the document of the newest run, the overlay of this moment (S-126). */
  #policy(): Policy {
    const documentRules = this.#state.agent?.permissions ?? NO_RULES;
    const overlayRules = this.#state.overlay;
    const { workspaceRoot } = this.#services.facts;
    const known = this.#knownPolicy;
    // The same object while it stands, because its rules are compiled once for it.
    if (known?.documentRules === documentRules && known.overlayRules === overlayRules) return known;
    this.#knownPolicy = { documentRules, overlayRules, workspaceRoot };
    return this.#knownPolicy;
  }

  /** The cache that lists show; losing it costs a rebuild, so a failure is only noted. */
  async #saveMetadata(): Promise<void> {
    const { events } = this.#log;
    if (!events.published || !events.writable) return;
    try {
      await this.#services.store.writeMetadata(await this.#metadata());
    } catch (error) {
      this.#services.logger.log("warn", "the session's metadata cache could not be written", {
        error: describeRunError(error).message,
      });
    }
  }

  async #requireIdle(): Promise<void> {
    // Whoever has seen a run's terminal event may go on, although the run still winds up.
    if (this.#state.activeRun === null) await this.#slot.ended;
    if (this.#slot.run === null) return;
    throw new CookieError("session_running", "the session is running; wait, steer or cancel");
  }

  /** With what the session used, as far as that can be told without reading the log again. */
  #metadata(): Promise<StoredMetadata> {
    return this.#log.events.atRest((logBytes) => {
      const usage = logBytes === null ? undefined : this.#parts.ledger.encode(logBytes);
      return { ...this.meta(), ...(usage && { usage }) };
    });
  }

  #requireWritable(): void {
    if (!this.writable) throw sessionForeign(this.sessionId);
  }
}
