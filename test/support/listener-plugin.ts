import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Capabilities, EmitResult, Manifest } from "@cookie-agent/sdk/protocol";
import { onTestFinished } from "vitest";
import { fixtureDirectory } from "./fixture-plugin.ts";

/** One event as the plugin read it. */
export interface Heard {
  readonly session_id: string;
  readonly run_id: string | null;
  readonly context_id: string;
  readonly seq: number;
  readonly event: { readonly type: string } & Record<string, unknown>;
  readonly timestamp: string;
}

/** One line of a listener's journal. */
export interface JournalEntry {
  readonly heard?: Heard;
  readonly onDisk?: boolean;
  readonly bus?: { readonly plugin: string; readonly name: string; readonly payload: unknown };
  readonly result?: EmitResult & { readonly error?: string };
  readonly emitted?: EmitResult;
  readonly call?: unknown;
  readonly blocked?: true;
}

/** What a listener is told to publish; see its source. */
export interface EmitAction {
  readonly name?: string;
  readonly payload?: unknown;
  /** Of a text that is the payload. */
  readonly characters?: number;
  /** Of arrays in each other that are the payload. */
  readonly levels?: number;
  readonly form?: "request" | "notification";
  /** `own`, `first` for that of the first event, `answered` for that of the call before, `unknown`, or an id. */
  readonly context?: string;
  readonly session?: string;
  /** Bytes of `_meta`. */
  readonly meta?: number;
  /** Instead of all that: any other request, with these params. */
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
}

export interface ListenerOptions {
  readonly capabilities?: Capabilities;
  readonly manifest?: Partial<Manifest>;
  readonly on?: Readonly<Record<string, readonly EmitAction[]>>;
  /** It hears nothing more after its first event until `open` is called. */
  readonly gated?: boolean;
  readonly config?: Readonly<Record<string, unknown>>;
  /** Further keys of its entry in config.toml. */
  readonly entry?: string;
}

/** A plugin that writes down what it hears; its tool is `<name>_publish`. */
export interface Listener {
  readonly name: string;
  readonly directory: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Section of config.toml. */
  readonly toml: string;
  journal(): Promise<JournalEntry[]>;
  /** What it heard of these types, all without any. */
  heard(...types: string[]): Promise<Heard[]>;
  /** The journal, once it holds an entry that matches. */
  until(matches: (entry: JournalEntry) => boolean): Promise<JournalEntry[]>;
  /** Lets a gated listener read on. */
  open(): Promise<void>;
}

const EVERYTHING: Capabilities = {
  subscribe_events: true,
  subscribe_bus: true,
  publish_bus: true,
  publish_session_events: true,
};

export async function createListener(
  name = "listener",
  options: ListenerOptions = {},
): Promise<Listener> {
  const directory = await mkdtemp(join(tmpdir(), `cookie-${name}-`));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const journalFile = join(directory, "journal.jsonl");
  const gate = join(directory, "gate");
  const main = pathToFileURL(join(fixtureDirectory("listener"), "main.mjs")).href;
  const manifest: Manifest = {
    manifest: 1,
    name,
    version: "1.0.0",
    protocol: ["0.1.0"],
    runtime: { kind: "node", entry: "main.mjs" },
    capabilities: options.capabilities ?? EVERYTHING,
    tools: [
      {
        name: `${name}_publish`,
        description: "Fixture tool publish.",
        parameters: {
          type: "object",
          properties: { actions: { type: "array" }, crash: { type: "boolean" } },
          additionalProperties: false,
        },
        permission_name: "publish",
      },
    ],
    ...options.manifest,
  };
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "main.mjs"), `import ${JSON.stringify(main)};\n`);
  await writeFile(join(directory, "cookie-plugin.json"), JSON.stringify(manifest));
  const config = {
    journal: journalFile,
    ...(options.on && { on: options.on }),
    ...(options.gated && { gate }),
    ...options.config,
  };
  const journal = async (): Promise<JournalEntry[]> => {
    if (!existsSync(journalFile)) return [];
    const lines = (await readFile(journalFile, "utf8")).split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as JournalEntry);
  };
  return {
    name,
    directory,
    config,
    toml: `[plugins.${name}]\npath = ${JSON.stringify(directory)}\n${options.entry ?? ""}\n[plugins.${name}.config]\n${tomlOf(config)}\n`,
    journal,
    async heard(...types) {
      const heard = (await journal()).flatMap((entry) => entry.heard ?? []);
      return types.length === 0 ? heard : heard.filter(({ event }) => types.includes(event.type));
    },
    async until(matches) {
      for (;;) {
        const entries = await journal();
        if (entries.some(matches)) return entries;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    open: () => writeFile(gate, ""),
  };
}

function tomlOf(config: Readonly<Record<string, unknown>>): string {
  return Object.entries(config)
    .map(([key, value]) => `${key} = ${inlineToml(value)}`)
    .join("\n");
}

function inlineToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inlineToml).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, member]) => `${JSON.stringify(key)} = ${inlineToml(member)}`,
  );
  return `{ ${members.join(", ")} }`;
}
