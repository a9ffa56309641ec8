import type { StoredEvent } from "@cookie-agent/sdk/protocol";
import type { ContextDocument } from "../config/agents-md.ts";
import type { TreeConsumer } from "../event/tree-consumer.ts";
import type { AdmissionFacts } from "../run/admit-run.ts";
import type { SessionStore } from "../store/session-store.ts";
import type { Logger } from "../support/logger.ts";
import type { DispatchStages } from "../tool/dispatch-stages.ts";
import type { TreeBudgets } from "./tree-budgets.ts";

/** What every session of a kernel shares; built once by the composition root. */
export interface SessionServices {
  readonly facts: AdmissionFacts;
  readonly store: SessionStore;
  /** The lower rooms, without what belongs to one session. */
  readonly stages: Omit<DispatchStages, "log" | "gate" | "policy">;
  /** Escalations are rejected at once because nobody could answer them (S-165). */
  readonly headless: boolean;
  readonly logger: Logger;
  /** Absent: no budget is configured. */
  readonly budgets?: TreeBudgets;
  /** Resolves once every plugin that starts with the kernel is connected or failed (E-050). */
  ready(): Promise<void>;
  /** Who keeps something of every session of a tree, in the order in which they are told of a load. */
  readonly treeConsumers?: readonly TreeConsumer[];
  /** Told of each event of every session once it is on disk, in the order of its session. */
  onRecorded?(event: StoredEvent): void;
  /** At the end of all sessions, when no run runs any more and every log can still be written (S 3.7). */
  beforeLogsClose?(): Promise<void>;
  /** AGENTS.md of user and workspace, as far as configured and present (S-262). */
  contextDocuments(): Promise<ContextDocument[]>;
}
