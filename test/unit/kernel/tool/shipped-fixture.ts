import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PermissionRule } from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../../../../kernel/src/artifact/artifact-store.ts";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { readArtifactPage } from "../../../../kernel/src/artifact/read-artifact.ts";
import { RunLog } from "../../../../kernel/src/event/run-log.ts";
import { ApprovalGate } from "../../../../kernel/src/permission/approval-gate.ts";
import { loadFirstParty } from "../../../../kernel/src/plugin/load-manifest.ts";
import { PluginHost } from "../../../../kernel/src/plugin/plugin-host.ts";
import { KeyMutex } from "../../../../kernel/src/support/key-mutex.ts";
import { ArgumentChecker } from "../../../../kernel/src/tool/check-arguments.ts";
import type {
  DispatchStages,
  ToolCallOutcome,
} from "../../../../kernel/src/tool/dispatch-stages.ts";
import { dispatchTurn } from "../../../../kernel/src/tool/dispatch-turn.ts";
import { OutputHub } from "../../../../kernel/src/tool/output-hub.ts";
import { buildSlotTable, type SlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import { noEvents } from "../plugin/event-services-fixture.ts";
import { allowAll, MemoryLog, NO_SELECTION, RUN, SESSION, toolCall } from "./dispatch-fixture.ts";

const REPOSITORY = join(import.meta.dirname, "../../../..");
/** The package folders that the command line passes in. */
export const SHIPPED = [join(REPOSITORY, "plugins/fs"), join(REPOSITORY, "plugins/bash")];

export interface ShippedRoom {
  readonly root: string;
  readonly workspace: string;
  readonly artifacts: ArtifactStore;
  readonly log: MemoryLog;
  readonly table: SlotTable;
  close(): Promise<void>;
  /** Runs one turn under these rules, decisions that rules leave open are made by `gate`. */
  dispatch(
    calls: readonly (readonly [tool: string, input: unknown])[],
    options?: {
      rules?: readonly PermissionRule[];
      limits?: Partial<DispatchStages["limits"]>;
      gate?: DispatchStages["gate"]["decide"];
      signal?: AbortSignal;
    },
  ): Promise<ToolCallOutcome[]>;
}

/** The tool room over the shipped plugins in their own processes; one for all tests of a file. */
export async function openShippedRoom(): Promise<ShippedRoom> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "cookie-shipped-")));
  const workspace = join(root, "work");
  const storeDir = join(root, "store");
  await Promise.all([mkdir(workspace), mkdir(join(storeDir, SESSION), { recursive: true })]);
  const artifacts = createLocalArtifactStore({ storeDir });
  const plugins = await PluginHost.open({
    firstParty: await loadFirstParty(SHIPPED),
    entries: [],
    hostEntry: join(REPOSITORY, "sdk/dist/host.js"),
    root: join(root, "state"),
    workspaceRoot: workspace,
    engineVersion: "0.1.0",
    env: process.env,
    secretEnvNames: new Set(),
    logger: { log: () => undefined },
    workspaceStillTrusted: () => Promise.resolve(true),
    services: {
      artifacts,
      configSection: () => Promise.resolve(undefined),
      readArtifact: (context, params) => readArtifactPage(artifacts, context.rootSessionId, params),
      writeArtifact: () => Promise.reject(new Error("no shipped plugin writes artifacts")),
      log: () => undefined,
      events: noEvents(),
      toolOwner: () => undefined,
    },
  });
  const table = buildSlotTable({ plugins: plugins.plugins(), tools: NO_SELECTION });
  const trace: string[] = [];
  const log = new MemoryLog(trace);
  const gate = new ApprovalGate({
    append: (drafts) => log.append(drafts),
    mode: () => "yolo",
    attended: () => false,
    headless: true,
    approvalTimeoutMs: 1000,
  });
  log.observe = (event) => gate.apply(event);
  const keys = new KeyMutex();
  const checker = new ArgumentChecker();
  return {
    root,
    workspace,
    artifacts,
    log,
    table,
    async close() {
      await plugins.close();
      await rm(root, { recursive: true, force: true });
    },
    dispatch(calls, options = {}) {
      const policy = {
        documentRules: options.rules ?? allowAll(),
        overlayRules: [],
        workspaceRoot: workspace,
      };
      const runLog = new RunLog(log);
      const ended = dispatchTurn(
        {
          sessionId: SESSION,
          rootSessionId: SESSION,
          runId: RUN,
          modelTurnSeq: 1,
          calls: calls.map(([name, input], index) => ({
            part: toolCall(name, input, `call-${index}`),
            contentIndex: index,
          })),
          toolSet: table.freeze({ policy, toolCalling: true }),
          cwd: workspace,
          workspaceRoot: workspace,
          stdinAttended: false,
        },
        {
          log: runLog,
          plugins,
          ownerOf: (name) => table.ownerOf(name),
          artifacts,
          gate: { decide: options.gate ?? ((...args) => gate.decide(...args)) },
          policy: () => policy,
          keys,
          outputs: new OutputHub(),
          limits: {
            maxLines: 2000,
            maxBytes: 51_200,
            maxRetainedBytes: 268_435_456,
            ...options.limits,
          },
          checker,
        },
        options.signal ?? new AbortController().signal,
      );
      return ended.finally(() => runLog.flush());
    },
  };
}
