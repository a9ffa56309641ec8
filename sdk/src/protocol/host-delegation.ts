import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { AgentId, boundedText, ContextId, Count, controlFreeText, SessionId } from "./scalars.ts";

/** A child of the calling session: a handle that is unique in the tree, or a session id (E-123). */
const SubagentReference = boundedText(1, 128);
const child = { session_id: SessionId, handle: z.string() };

/** Starts a child session, or resumes one, under the limits of depth and number (E-123). No kernel offers it yet. */
export const DelegationStart = request(
  "host/delegation/start",
  () =>
    fromPlugin({
      context_id: ContextId,
      agent: AgentId,
      description: controlFreeText(1, 512),
      prompt: boundedText(1, 1024 * 1024),
      /** False: the child is cancelled with this call. */
      background: z.boolean(),
      inherit_context: z.boolean().optional(),
      resume: SubagentReference.optional(),
      skill: boundedText(1, 128).optional(),
    }),
  () =>
    toPlugin({
      ...child,
      state: z.enum(["running", "queued"]),
      /** One-based place in the queue. */
      position: Count.optional(),
    }),
);

/** One page of what a child has said; with `wait` the answer comes once the child is done (E-107). No kernel offers it yet. */
export const DelegationResult = request(
  "host/delegation/result",
  () =>
    fromPlugin({
      context_id: ContextId,
      ref: SubagentReference,
      wait: z.boolean().optional(),
      offset: Count.optional(),
      limit: z.int().min(1).optional(),
    }),
  () =>
    toPlugin({
      ...child,
      status: z.string(),
      text: z.string(),
      total_lines: Count,
      next_offset: Count.optional(),
    }),
);

/** Ends a child session. No kernel offers it yet. */
export const DelegationCancel = request(
  "host/delegation/cancel",
  () =>
    fromPlugin({
      context_id: ContextId,
      ref: SubagentReference,
      reason: boundedText(1, 256).optional(),
    }),
  () => toPlugin({ ...child, cancelled: z.boolean() }),
);

/** The agents that the calling session may delegate to. No kernel offers it yet. */
export const DelegationTargets = request(
  "host/delegation/targets",
  () => fromPlugin({ context_id: ContextId }),
  () => toPlugin({ targets: z.array(z.object({ agent: AgentId, description: z.string() })) }),
);
