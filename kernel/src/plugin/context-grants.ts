import {
  type ContextId,
  CookieError,
  type Digest,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { createId } from "../support/create-id.ts";
import type { EmitTokens } from "./emit-tokens.ts";
import type { CallContext } from "./host-services.ts";
import type { RequestClock } from "./request-clock.ts";

export type ContextScope = "request" | "call";

interface Grant {
  readonly scope: ContextScope;
  readonly context: CallContext;
  /** Digests of the artifacts that were written under this right. */
  readonly written: Set<Digest>;
  /** Null: the request has no time limit. */
  readonly clock: RequestClock | null;
  /** Made when somebody waits under this right; aborts when it ends. */
  end: AbortController | null;
}

/** Somebody waits under a right. */
export interface ContextHold {
  /** Aborts when the right ends. */
  readonly signal: AbortSignal;
  release(): void;
}

/** The rights of one connection to act on sessions: each lasts while its request is unanswered (E-116, E-117). */
export class ContextGrants {
  /** Set for a plugin that publishes: each right then also serves one `plugin/emit` (E-148). */
  emitTokens: EmitTokens | undefined;
  readonly #grants = new Map<ContextId, Grant>();

  /** @param times The clock of the request; null when it has no limit. */
  grant(
    scope: ContextScope,
    context: CallContext,
    times: { readonly clock?: RequestClock | null } = {},
  ): ContextId {
    const { clock = null } = times;
    const id = createId<ContextId>();
    const written = context.written ?? new Set();
    this.#grants.set(id, { scope, context, written, clock, end: null });
    this.emitTokens?.open(id, context.sessionId);
    return id;
  }

  /** The request has run out of time: what it would still publish has to come soon. */
  endEmission(id: ContextId, withinMs: number): void {
    this.emitTokens?.endWithin(id, withinMs);
  }

  /** Whose right it is; undefined for one that is unknown or over. */
  sessionOf(id: ContextId): SessionId | undefined {
    return this.#grants.get(id)?.context.sessionId;
  }

  revoke(id: ContextId): void {
    const grant = this.#grants.get(id);
    this.#grants.delete(id);
    this.emitTokens?.spend(id);
    grant?.end?.abort();
  }

  revokeAll(): void {
    for (const id of [...this.#grants.keys()]) this.revoke(id);
    this.emitTokens?.clear();
  }

  /** Stops the clock of the context's request until the hold is released (E-107). */
  hold(id: ContextId): ContextHold {
    const grant = this.#grants.get(id);
    if (grant === undefined) throw contextInvalid();
    grant.end ??= new AbortController();
    grant.clock?.hold();
    return { signal: grant.end.signal, release: () => grant.clock?.release() };
  }

  noteWritten(id: ContextId, digest: Digest): void {
    this.#grants.get(id)?.written.add(digest);
  }

  hasWritten(id: ContextId, digest: Digest): boolean {
    return this.#grants.get(id)?.written.has(digest) === true;
  }

  /** Throws `context_invalid` for an unknown, spent or foreign context and for one of too small a scope. */
  resolve(id: ContextId, needed: ContextScope): CallContext {
    const grant = this.#grants.get(id);
    if (grant === undefined || (needed === "call" && grant.scope !== "call")) {
      throw contextInvalid();
    }
    return grant.context;
  }
}

function contextInvalid(): CookieError {
  return new CookieError(
    "context_invalid",
    "the context is unknown or its request is answered already; use the context_id of a request that is still open",
  );
}
