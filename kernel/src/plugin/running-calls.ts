import {
  CookieError,
  isCookieError,
  PROGRESS_WINDOW_BYTES,
  type ToolCallId,
  type ToolCallResult,
  type ToolProgress,
  ToolsCall,
  ToolsProgress,
  ToolsProgressAck,
  ToolsStdin,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { checkAnswer } from "./check-answer.ts";
import { withDiscarded } from "./discarded.ts";
import type { CallContext } from "./host-services.ts";
import type { PluginCall } from "./plugin-call.ts";
import type { ResolvedTool } from "./plugin-facts.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import { ProgressIntake } from "./progress-intake.ts";
import type { RequestDesk } from "./request-desk.ts";
import { StdinFeed } from "./stdin-feed.ts";

export interface RunningCallsOptions {
  readonly rpc: Connection;
  readonly desk: RequestDesk;
  readonly limits: PluginLimits;
  /** Whether other plugins use the pipe, which one call must not stop then (E-103). */
  readonly sharesPipe: boolean;
  diagnose(text: string): void;
  /** Gives the failure of a broken connection its reason. */
  explain<T>(work: Promise<T>): Promise<T>;
}

interface RunningCall {
  readonly intake: ProgressIntake;
  readonly stdin: StdinFeed | null;
}

/** The calls that one process works on: the output and the input of each, from the request to the last delta. */
export class RunningCalls {
  readonly #options: RunningCallsOptions;
  readonly #running = new Map<ToolCallId, RunningCall>();

  /** To be made before the connection listens. */
  constructor(options: RunningCallsOptions) {
    this.#options = options;
    options.rpc.onNotification(ToolsProgress, (delta, raw) => this.#onProgress(delta, raw));
  }

  /**
   * Settles only after every delta that came before the answer is stored (E-008).
   *
   * @param contextOf Who the plugin acts for, given what aborts when the call is cancelled or gives up.
   */
  async run(
    call: PluginCall,
    tool: ResolvedTool,
    contextOf: (signal: AbortSignal) => CallContext,
    signal: AbortSignal,
  ): Promise<{ answer: ToolCallResult; context: CallContext }> {
    const { params } = call;
    const id = params.invocation_id;
    if (this.#running.has(id)) throw new CookieError("busy", `the call ${id} runs already`);
    const { desk, limits, explain } = this.#options;
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    let progressFailure: CookieError | undefined;
    const intake = this.#openIntake(call, tool, (error) => {
      progressFailure = error;
      stop.abort(error);
    });
    const stdin = params.stdin ? new StdinFeed(limits) : null;
    this.#running.set(id, { intake, stdin });
    const context = contextOf(stop.signal);
    try {
      const answer = await explain(
        desk.ask(ToolsCall, {
          signal: stop.signal,
          timeoutMs: call.timeoutMs,
          context: { scope: "call", facts: context },
          params: (contextId) => ({ ...params, context_id: contextId }),
        }),
      );
      await intake.finish();
      if (progressFailure !== undefined) throw progressFailure;
      return { answer: checkAnswer(answer, tool, intake.streamed), context };
    } catch (error) {
      await intake.finish();
      throw isCookieError(error) ? withDiscarded(error, { progress: intake.discarded }) : error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      stdin?.close();
      this.#running.delete(id);
    }
  }

  /** False when the call takes no input (any more) (E-106). Rejects with `busy` when too much waits. */
  async stdin(invocationId: ToolCallId, data: Uint8Array | null, eof: boolean): Promise<boolean> {
    const feed = this.#running.get(invocationId)?.stdin;
    if (!feed) return false;
    return feed.write(data, eof, async (chunk, last) => {
      const { accepted } = await this.#options.rpc.request(ToolsStdin, {
        invocation_id: invocationId,
        ...(chunk === null ? {} : { data: chunk }),
        eof: last,
      });
      return accepted;
    });
  }

  #openIntake(
    call: PluginCall,
    tool: ResolvedTool,
    fail: (error: CookieError) => void,
  ): ProgressIntake {
    const { rpc, limits, sharesPipe } = this.#options;
    return new ProgressIntake({
      output: tool.truncation === "opt_out" ? null : tool.output,
      windowBytes: sharesPipe ? PROGRESS_WINDOW_BYTES : null,
      ackBytes: limits.ackBytes,
      capture: (news) => call.onProgress(news),
      acknowledge: (bytes) => {
        rpc
          .notify(ToolsProgressAck, { invocation_id: call.params.invocation_id, bytes })
          .catch(() => undefined);
      },
      fail,
    });
  }

  #onProgress(delta: ToolProgress, raw: readonly Uint8Array[] | undefined): void | Promise<void> {
    const running = this.#running.get(delta.invocation_id);
    if (running === undefined || running.intake.closed) {
      this.#options.diagnose("progress for a call that is not running was dropped");
    }
    const stored = running?.intake.accept(delta, raw);
    // A pipe of its own is simply not read on; a shared one must not stop for one call.
    if (stored !== undefined && !this.#options.sharesPipe) return stored;
  }
}
