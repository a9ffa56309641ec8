import type { SessionId, SessionOrigin } from "@cookie-agent/sdk/protocol";
import { textOnly } from "../config/media-target.ts";
import type { BoundModel } from "../model/bound-model.ts";
import { evaluatePolicy } from "../permission/evaluate-policy.ts";
import type { SessionRights } from "../plugin/host-services.ts";
import type { DispatchStages } from "../tool/dispatch-stages.ts";
import type { AdmittedRun } from "./admit-run.ts";

/** A run as far as its session's rights depend on it. */
export interface RunFacts {
  readonly sessionId: SessionId;
  readonly rootSessionId: SessionId;
  readonly run: AdmittedRun;
  readonly view: { readonly origin: SessionOrigin | null; readonly handle: string | null };
  /** Of the chain's entry that is used now. */
  readonly position: { readonly index: number };
  readonly stages: Pick<DispatchStages, "policy">;
  /** Canonical; also the working directory of calls. */
  readonly workspaceRoot: string;
}

/** What the plugins that a run calls may learn of its session (E-119, E-126). */
export function createSessionRights(context: RunFacts): SessionRights {
  const model = (): BoundModel | undefined => context.run.chain[context.position.index];
  return {
    info: () => {
      const { sessionId, rootSessionId, run, view, workspaceRoot } = context;
      const current = model();
      return {
        session_id: sessionId,
        root_session_id: rootSessionId,
        ...placeOf(view.origin),
        handle: view.handle,
        agent: run.agent.agent,
        run_id: run.runId,
        cwd: workspaceRoot,
        workspace_root: workspaceRoot,
        ...(current && {
          model: { key: current.selection.model, input: ["text", ...current.media.kinds.keys()] },
        }),
      };
    },
    media: () => model()?.media ?? textOnly("of this run", "unknown"),
    mayRead: (label) => {
      const policy = context.stages.policy();
      return evaluatePolicy(policy, [{ action: "read", label }]).effect === "allow";
    },
  };
}

function placeOf(origin: SessionOrigin | null) {
  if (origin?.type !== "delegated") return { depth: 0 };
  return { parent_session_id: origin.parent_session_id, depth: origin.depth };
}
