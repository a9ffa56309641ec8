import { CookieError, type RunId, type ToolCallId } from "@cookie-agent/sdk/protocol";
import { type AdmittedRun, inputEvents } from "../run/admit-run.ts";
import { Mailbox } from "../support/mailbox.ts";
import { asksAboutInput, handledReason, passInput } from "./admission-hooks.ts";
import type { SessionParts } from "./session-parts.ts";

/** What became of a steering input: a plugin may have seen to it itself, then nobody else hears of it. */
export type Steered =
  | { readonly accepted: true }
  | { readonly accepted: false; readonly handled_reason: string };

export interface SessionInputsParts extends SessionParts {
  activeRun(): AdmittedRun | null;
  /** Aborts when the session is being closed. */
  readonly closing: AbortSignal;
}

/** What people say into a run while it runs: steering for the model, keystrokes for its commands. */
export class SessionInputs {
  readonly #parts: SessionInputsParts;
  /** Between steering and the run that takes it in: an input is promoted, recalled or void, never two of these. */
  readonly #boundary = new Mailbox();
  /** Plugins look at one input after the other, while the run goes on. */
  readonly #looking = new Mailbox();

  constructor(parts: SessionInputsParts) {
    this.#parts = parts;
  }

  /** Runs `act` while no input can arrive or be taken back. */
  atBoundary<T>(act: () => Promise<T>): Promise<T> {
    return this.#boundary.run(act);
  }

  /** Keeps what was said for the next safe boundary (S 5.8), as plugins leave it. */
  steer(runId: RunId, said: string): Promise<Steered> {
    if (!asksAboutInput(this.#parts)) return this.#admit(runId, said, said);
    return this.#looking.run(async () => {
      this.#requireRun(runId);
      let input: string;
      try {
        input = await passInput(this.#parts, said);
      } catch (error) {
        const handled_reason = handledReason(error);
        if (handled_reason === undefined) throw error;
        return { accepted: false, handled_reason };
      }
      return this.#admit(runId, input, said);
    });
  }

  #admit(runId: RunId, input: string, originalInput: string): Promise<Steered> {
    return this.#boundary.run(async () => {
      this.#requireRun(runId);
      const payloads = inputEvents("user_input_admitted", { input, originalInput });
      await this.#parts.log.append(payloads.map((payload) => ({ payload, runId })));
      return { accepted: true };
    });
  }

  /** Takes back the newest input that no turn has seen (S-147). */
  recall(runId: RunId): Promise<string | null> {
    return this.#boundary.run(async () => {
      this.#requireRun(runId);
      const newest = this.#parts.state.pendingInputs.at(-1);
      if (newest === undefined) return null;
      const { seq, text } = newest;
      await this.#parts.log.append([
        { payload: { type: "user_input_recalled", user_input_seq: seq, input: text }, runId },
      ]);
      return text;
    });
  }

  /** Feeds the standard input of a running call; `stdin_unavailable` when it has none (S-149). */
  async feedStdin(
    runId: RunId,
    toolCallId: ToolCallId,
    data: Uint8Array | null,
    eof: boolean,
  ): Promise<void> {
    const { toolSet } = this.#requireRun(runId);
    const call = this.#parts.state.openCalls.get(toolCallId);
    const plugin = call === undefined ? undefined : toolSet.pluginOf(call.tool);
    if (plugin === undefined || !(await this.#plugins.stdin(plugin, toolCallId, data, eof))) {
      throw new CookieError("stdin_unavailable", "the call takes no input, or its input has ended");
    }
    const payload = {
      type: "tool_stdin_submitted" as const,
      tool_call_id: toolCallId,
      byte_count: data?.byteLength ?? 0,
    };
    try {
      if (this.#parts.state.openCalls.has(toolCallId))
        await this.#parts.log.append([{ payload, runId }]);
    } catch (error) {
      // The input may have ended the call; then its terminal event came first and this one has no place.
      if (this.#parts.state.openCalls.has(toolCallId)) throw error;
    }
  }

  /** Nobody is left who could type: calls that read their input see its end (S-256). */
  endStdin(): void {
    const toolSet = this.#parts.activeRun()?.toolSet;
    for (const [toolCallId, { tool }] of this.#parts.state.openCalls) {
      const plugin = toolSet?.pluginOf(tool);
      if (plugin === undefined) continue;
      this.#plugins.stdin(plugin, toolCallId, null, true).catch(() => undefined);
    }
  }

  get #plugins() {
    return this.#parts.services.stages.plugins;
  }

  #requireRun(runId: RunId): AdmittedRun {
    const run = this.#parts.activeRun();
    // The run's terminal event counts before its work has wound up.
    if (run?.runId !== runId || this.#parts.state.activeRun?.runId !== runId) {
      throw new CookieError("run_missing", `run ${runId} is not active in this session`);
    }
    return run;
  }
}
