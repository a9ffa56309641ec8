import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { boundedText, ContextId, Count } from "./scalars.ts";

const GoalItem = z.strictObject({ description: boundedText(1, 4096), finished: z.boolean() });

/** What a root session works towards, with its checklist. */
const Goal = z.object({
  goal_id: z.string(),
  objective: z.string(),
  status: z.string(),
  revision: Count,
  items: z.array(GoalItem),
});

/** The session's goal; null when it has none. No kernel offers it yet. */
export const GoalsGet = request(
  "host/goals/get",
  () => fromPlugin({ context_id: ContextId }),
  () => toPlugin({ goal: Goal.nullable() }),
);

/** Replaces the whole checklist; the last accepted one wins (E-125). No kernel offers it yet. */
export const GoalsUpdate = request(
  "host/goals/update",
  () => fromPlugin({ context_id: ContextId, items: z.array(GoalItem).max(256) }),
  () => toPlugin({ goal: Goal }),
);
