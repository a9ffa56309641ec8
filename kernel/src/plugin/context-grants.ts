import {
  type ContextId,
  CookieError,
  type Digest,
  type SessionId,
} from "@cookie-agent/sdk/protocol";
import { createId } from "../support/create-id.ts";
import type { EmitTokens } from "./emit-tokens.ts";
import type { CallContext } from "./host-services.ts";

export type ContextScope = "request" | "call";

interface Grant {
  readonly scope: ContextScope;
  readonly context: CallContext;
  /** Digests of the artifacts that were written under this right. */
  readonly written: Set<Digest>;
}

/** The rights of one connection to act on sessions: each lasts while its request is unanswered (E-116, E-117). */
export class ContextGrants {
  /** Set for a plugin that publishes: each right then also serves one `plugin/emit` (E-148). */
  emitTokens: EmitTokens | undefined;
  readonly #grants = new Map<ContextId, Grant>();

  /** @param emitMs How long it may serve for `plugin/emit` at the most. */
  grant(scope: ContextScope, context: CallContext, emitMs = Number.POSITIVE_INFINITY): ContextId {
    const id = createId<ContextId>();
    this.#grants.set(id, { scope, context, written: new Set() });
    this.emitTokens?.open(id, context.sessionId, emitMs);
    return id;
  }

  /** Whose right it is; undefined for one that is unknown or over. */
  sessionOf(id: ContextId): SessionId | undefined {
    return this.#grants.get(id)?.context.sessionId;
  }

  revoke(id: ContextId): void {
    this.#grants.delete(id);
    this.emitTokens?.spend(id);
  }

  revokeAll(): void {
    this.#grants.clear();
    this.emitTokens?.clear();
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
      throw new CookieError(
        "context_invalid",
        "the context is unknown or its request is answered already; use the context_id of a request that is still open",
      );
    }
    return grant.context;
  }
}
