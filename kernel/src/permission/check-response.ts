import {
  type ApprovalRequest,
  type ApprovalRespond,
  CookieError,
  type EventPayloadOf,
  type ParamsOf,
} from "@cookie-agent/sdk/protocol";

export type ApprovalResponse = ParamsOf<typeof ApprovalRespond>;

/** True when the same answer was recorded before under this key; any other answer is `idempotency_conflict`. */
export function isRepeated(
  recorded: EventPayloadOf<"approval_user_decision_recorded"> | undefined,
  response: ApprovalResponse,
): boolean {
  if (recorded === undefined) return false;
  if (
    recorded.approval_id === response.approval_id &&
    recorded.decision === response.decision &&
    recorded.feedback === (response.feedback ?? null)
  ) {
    return true;
  }
  throw new CookieError(
    "idempotency_conflict",
    "this client_response_id was used for another answer; send a new one",
  );
}

/** The checks on what is answered, in the order of S-169. */
export function checkResponse(request: ApprovalRequest, response: ApprovalResponse): void {
  if (response.request_revision !== request.revision) {
    throw new CookieError(
      "approval_revision_conflict",
      `the approval is at revision ${request.revision}; read it again before answering`,
      {
        data: {
          expected_revision: response.request_revision,
          found_revision: request.revision,
        },
      },
    );
  }
  if (response.operation_fingerprint !== request.operation_fingerprint) {
    throw new CookieError(
      "operation_fingerprint_mismatch",
      "the answer names another operation than the approval",
    );
  }
  if (!isOffered(request.constraints, response.decision)) {
    throw new CookieError(
      "decision_not_allowed",
      `the approval does not offer ${response.decision}`,
    );
  }
}

function isOffered(
  constraints: ApprovalRequest["constraints"],
  decision: ApprovalResponse["decision"],
): boolean {
  switch (decision) {
    case "approve_once":
      return constraints.allow_once;
    case "approve_tree":
      return constraints.allow_tree_grant;
    case "cancel":
      return constraints.cancellable;
    case "reject":
      return true;
  }
}
