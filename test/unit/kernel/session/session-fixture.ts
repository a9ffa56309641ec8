import { join } from "node:path";
import type { StoredEvent } from "@cookie-agent/sdk/protocol";
import { createLocalArtifactStore } from "../../../../kernel/src/artifact/local-artifact-store.ts";
import { createModelRuntime } from "../../../../kernel/src/model/model-runtime.ts";
import { SessionRegistry } from "../../../../kernel/src/session/session-registry.ts";
import type { SessionServices } from "../../../../kernel/src/session/session-services.ts";
import { openLocalSessionStore } from "../../../../kernel/src/store/local-session-store.ts";
import type { LogFile, SessionStore } from "../../../../kernel/src/store/session-store.ts";
import { revisionOf } from "../../../../kernel/src/support/digest.ts";
import { KeyMutex } from "../../../../kernel/src/support/key-mutex.ts";
import { silentLogger } from "../../../../kernel/src/support/logger.ts";
import { ArgumentChecker } from "../../../../kernel/src/tool/check-arguments.ts";
import { OutputHub } from "../../../../kernel/src/tool/output-hub.ts";
import { makeScenario, type Scenario } from "../config/scenario.ts";

export const OFFLINE = {
  agent: "default",
  model: { model: "offline/script", variant: null },
} as const;

/** A disk that can be made to fail. */
export interface Disk {
  full: boolean;
  /** Becomes full once a block with this text is durable. */
  fullAfter?: string;
  /** The types of the events in each block that was appended to a log on it. */
  readonly blocks: string[][];
}

/**
 * Sessions over the offline model and a real store, without plugins; the disk obeys `disk`.
 * @param on The home and directory of earlier sessions.
 */
export async function openSessions(on?: { readonly scenario: Scenario }) {
  const scenario = on?.scenario ?? (await makeScenario());
  const { config, agents } = await scenario.load();
  const disk: Disk = { full: false, blocks: [] };
  const inner = await openLocalSessionStore({
    sessionsDir: join(scenario.root, "sessions"),
    cwd: scenario.cwd,
  });
  const store = failingStore(inner, disk);
  const models = createModelRuntime({
    providers: config.providers,
    pricing: config.pricing,
    promptCaching: config.promptCaching,
    engineVersion: "0.0.0-test",
  });
  const revision = revisionOf("test", null);
  const services: SessionServices = {
    facts: {
      agents,
      models,
      config,
      workspaceRoot: scenario.cwd,
      plugins: () => [],
      revisions: () => ({
        runtime_revision: revision,
        catalog_revision: revision,
        provider_state_revision: revision,
        model_revision: revision,
        agent_revision: revision,
        recipe_registry_revision: revision,
        manifest_revision: revision,
      }),
    },
    store,
    headless: true,
    logger: silentLogger,
    ready: async () => undefined,
    contextDocuments: async () => [],
    stages: {
      plugins: {
        plugins: () => [],
        currentTool: () => undefined,
        resolveTool: () => Promise.resolve(null),
        warm: () => undefined,
        prepare: () => Promise.reject(new Error("no plugin is here")),
        revalidate: () => Promise.reject(new Error("no plugin is here")),
        discard: () => undefined,
        call: () => Promise.reject(new Error("no plugin is here")),
        stdin: async () => false,
      },
      ownerOf: () => undefined,
      artifacts: createLocalArtifactStore({ storeDir: store.directory }),
      outputs: new OutputHub(),
      checker: new ArgumentChecker(),
      keys: new KeyMutex(),
      limits: config.toolOutput,
    },
  };
  return { scenario, sessions: new SessionRegistry(services), store, disk, services };
}

function failingStore(inner: SessionStore, disk: Disk): SessionStore {
  return {
    directory: inner.directory,
    list: (everywhere) => inner.list(everywhere),
    roots: () => inner.roots(),
    find: (sessionId) => inner.find(sessionId),
    acquire: (rootId) => inner.acquire(rootId),
    access: (rootId) => inner.access(rootId),
    async publish(publication) {
      if (disk.full) throw noSpace();
      const { lease, file } = await inner.publish(publication);
      return { lease, file: failingFile(file, disk) };
    },
    open: async (location, lease) => failingFile(await inner.open(location, lease), disk),
    heldLease: (rootId) => inner.heldLease(rootId),
    children: (rootId) => inner.children(rootId),
    byteLength: (location) => inner.byteLength(location),
    writeMetadata: (metadata) => inner.writeMetadata(metadata),
    recordCrossReferences: (references) => inner.recordCrossReferences(references),
    crossReferences: () => inner.crossReferences(),
    remove: (rootId) => inner.remove(rootId),
    sweep: () => inner.sweep(),
    close: () => inner.close(),
  };
}

function failingFile(inner: LogFile, disk: Disk): LogFile {
  let fills = false;
  const unlessFull = async <T>(act: () => Promise<T>): Promise<T> => {
    if (disk.full) throw noSpace();
    return act();
  };
  return {
    get byteLength() {
      return inner.byteLength;
    },
    read: (fromByte) => inner.read(fromByte),
    append: (bytes) => {
      disk.blocks.push(typesIn(bytes));
      fills ||= disk.fullAfter !== undefined && Buffer.from(bytes).includes(disk.fullAfter);
      return unlessFull(() => inner.append(bytes));
    },
    sync: () =>
      unlessFull(async () => {
        await inner.sync();
        disk.full ||= fills;
        fills = false;
      }),
    truncate: (byteLength) => inner.truncate(byteLength),
    close: () => inner.close(),
  };
}

function typesIn(block: Uint8Array): string[] {
  const lines = Buffer.from(block).toString().trimEnd().split("\n");
  return lines.map((line) => (JSON.parse(line) as StoredEvent).payload.type);
}

function noSpace(): Error {
  return Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
}
