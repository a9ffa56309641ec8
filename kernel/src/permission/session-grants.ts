import type {
  StoredEvent,
  TreeApprovalGrant,
  TreeApprovalGrantId,
} from "@cookie-agent/sdk/protocol";

/** The grants that one session's log holds, as a fold of its events (S 6.10). */
export class SessionGrants {
  readonly #grants = new Map<TreeApprovalGrantId, TreeApprovalGrant>();

  apply({ payload }: StoredEvent): void {
    if (payload.type === "tree_approval_grant_committed") {
      this.#grants.set(payload.grant.grant_id, payload.grant);
    }
  }

  /** Forgets everything, to be told the visible events from the first one again. */
  reset(): void {
    this.#grants.clear();
  }

  all(): Iterable<TreeApprovalGrant> {
    return this.#grants.values();
  }
}
