import type {
  ApprovalId,
  Digest,
  EventPayload,
  StoredEvent,
  ToolCallId,
} from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DoomLoopCounter } from "../../../../kernel/src/permission/doom-loop.ts";

type Step =
  | { readonly kind: "ask"; readonly operation: number }
  | { readonly kind: "end"; readonly operation: number; readonly completed: boolean }
  | { readonly kind: "input" };

const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("ask" as const), operation: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      operation: fc.nat(2),
      completed: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "input" as const }) },
);

const digest = (operation: number): Digest => String(operation).padStart(64, "0");

test("[S-176] reading the log again leads to the counts of whoever wrote it", () => {
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 40 }), fc.nat(2), (steps, next) => {
      const writer = new DoomLoopCounter();
      const log: StoredEvent[] = [];
      const record = (payload: object) => {
        const event = { seq: log.length + 1, payload: payload as EventPayload } as StoredEvent;
        log.push(event);
        writer.apply(event);
      };
      for (const [at, step] of steps.entries()) {
        if (step.kind === "ask") {
          const approvalId = `approval-${at}` as ApprovalId;
          writer.request(approvalId, digest(step.operation));
          record({
            type: "approval_requested",
            request: { approval_id: approvalId, operation_fingerprint: digest(step.operation) },
          });
        } else if (step.kind === "end") {
          const toolCallId = `call-${at}` as ToolCallId;
          record({
            type: "tool_call_started",
            tool_call_id: toolCallId,
            operation_fingerprint: digest(step.operation),
          });
          record({
            type: "tool_call_terminated",
            tool_call_id: toolCallId,
            outcome: step.completed ? "completed" : "failed",
          });
        } else {
          record({ type: "user_input_submitted", input: "go on" });
        }
      }
      const reader = new DoomLoopCounter();
      for (const event of log) reader.apply(event);
      const last = "approval-last" as ApprovalId;
      expect(reader.request(last, digest(next))).toBe(writer.request(last, digest(next)));
    }),
  );
});
