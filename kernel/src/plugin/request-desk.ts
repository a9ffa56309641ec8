import {
  type ContextId,
  CookieError,
  isCookieError,
  type Method,
  type ParamsInput,
  type ResultOf,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { createDeferred } from "../support/deferred.ts";
import type { ContextGrants, ContextScope } from "./context-grants.ts";
import { withDiscarded } from "./discarded.ts";
import type { CallContext } from "./host-services.ts";
import type { PluginLimits } from "./plugin-limits.ts";
import { RequestClock } from "./request-clock.ts";
import type { RequestSlots } from "./request-slots.ts";

/** How long after its timeout a request may still publish (E-148). */
const EMIT_GRACE_MS = 100;

export interface RequestDeskOptions {
  readonly rpc: Connection;
  readonly slots: RequestSlots;
  readonly grants: ContextGrants;
  readonly limits: PluginLimits;
  /** A request that was given up is still unanswered after `deafAfterMs` (E-062). */
  onDeaf(abandoned: number): void;
  onIdle(): void;
}

export interface AskOptions<M extends Method> {
  /** Aborting with a `CookieError` as reason makes that the outcome; any other reason is `cancelled`. */
  readonly signal: AbortSignal;
  /** Counted from dispatch; null: no limit. */
  readonly timeoutMs: number | null;
  /** How long a cancelled request may clean up; by default `cancelCleanupMs`. */
  readonly cleanupMs?: number;
  /** The session that the plugin may act on until it has answered. */
  readonly context?: { readonly scope: ContextScope; readonly facts: CallContext };
  params(contextId: ContextId): ParamsInput<M>;
}

/**
 * Sends requests to one plugin within its in-flight limit (E-052). A cancelled or timed-out one is asked to stop, may
 * clean up for `cancelCleanupMs` and is then abandoned (E-105); it keeps its place until the plugin answers.
 */
export class RequestDesk {
  readonly #options: RequestDeskOptions;
  readonly #open = new Set<(error: CookieError) => void>();
  #abandoned = 0;

  constructor(options: RequestDeskOptions) {
    this.#options = options;
  }

  async ask<M extends Method>(method: M, options: AskOptions<M>): Promise<ResultOf<M>> {
    if (options.signal.aborted) throw interruptionOf(options.signal);
    const turn = this.#options.slots.take(options.signal);
    if (turn !== undefined) {
      await turn;
      if (options.signal.aborted) {
        this.#options.slots.release();
        throw interruptionOf(options.signal);
      }
    }
    return this.#dispatch(method, options);
  }

  /** Ends every open request with this error, as a cancellation would. */
  interruptAll(error: CookieError): void {
    for (const interrupt of [...this.#open]) interrupt(error);
  }

  #dispatch<M extends Method>(method: M, options: AskOptions<M>): Promise<ResultOf<M>> {
    const { rpc, slots, grants, limits } = this.#options;
    const { signal, timeoutMs, context } = options;
    const outcome = createDeferred<ResultOf<M>>();
    let interruption: CookieError | undefined;
    let patience: NodeJS.Timeout | undefined;
    let forget: (() => void) | undefined;
    let cancelPeer: (() => void) | undefined;

    const revoke = () => {
      if (contextId !== undefined) grants.revoke(contextId);
    };
    const interrupt = (error: CookieError) => {
      if (interruption !== undefined) return;
      interruption = error;
      clock?.stop();
      cancelPeer?.();
      patience = setTimeout(() => {
        revoke();
        forget = this.#abandon();
        outcome.reject(error);
      }, options.cleanupMs ?? limits.cancelCleanupMs);
    };
    const onAbort = () => interrupt(interruptionOf(signal));
    const onTimeout = (afterMs: number) => {
      if (contextId !== undefined) grants.endEmission(contextId, EMIT_GRACE_MS);
      interrupt(timedOut(afterMs));
    };
    const answered = () => {
      clock?.stop();
      clearTimeout(patience);
      signal.removeEventListener("abort", onAbort);
      this.#open.delete(interrupt);
      forget?.();
      revoke();
      slots.release();
      if (slots.idle) this.#options.onIdle();
    };

    const clock =
      timeoutMs === null ? null : new RequestClock(timeoutMs, () => onTimeout(timeoutMs));
    const contextId =
      context === undefined ? undefined : grants.grant(context.scope, context.facts, { clock });
    this.#open.add(interrupt);
    signal.addEventListener("abort", onAbort, { once: true });
    rpc
      .request(method, options.params(contextId ?? ("" as ContextId)), {
        onSent: (cancel) => {
          cancelPeer = cancel;
        },
      })
      .then(
        (result) => {
          answered();
          if (interruption === undefined) outcome.resolve(result);
          else outcome.reject(withDiscarded(interruption, { results: 1 }));
        },
        (error: unknown) => {
          answered();
          outcome.reject(interruption ?? withoutClaim(error));
        },
      );
    return outcome.promise;
  }

  /** Counts a request that was given up; returns what to do when it is answered after all. */
  #abandon(): () => void {
    this.#abandoned += 1;
    const { limits, onDeaf } = this.#options;
    const timer = setTimeout(() => onDeaf(this.#abandoned), limits.deafAfterMs);
    timer.unref();
    return () => {
      this.#abandoned -= 1;
      clearTimeout(timer);
    };
  }
}

function timedOut(timeoutMs: number): CookieError {
  return new CookieError("timeout", `the plugin did not answer within ${timeoutMs} ms`, {
    data: { timeout_ms: timeoutMs },
  });
}

function interruptionOf(signal: AbortSignal): CookieError {
  return isCookieError(signal.reason)
    ? signal.reason
    : new CookieError("cancelled", "the call was cancelled");
}

/** Only the kernel cancels; a plugin that says so without having been asked has failed. */
function withoutClaim(error: unknown): unknown {
  if (!isCookieError(error, "cancelled")) return error;
  return new CookieError("execution_failed", error.message, { cause: error });
}
