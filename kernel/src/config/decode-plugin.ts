import { existsSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { PermissionAction, PluginName, Revision } from "@cookie-agent/sdk/protocol";
import type { ConfigLayer } from "./config-error.ts";
import { ENTRY_DEFAULTS, type PluginEntry, type PluginLaunch } from "./plugin-entry.ts";
import { TableReader, type TextRule } from "./table-reader.ts";
import { nonEmpty } from "./text-rules.ts";

const ADJUSTABLE_KEYS = [
  "enabled",
  "interception_timeout_ms",
  "startup_timeout_ms",
  "shutdown_grace_ms",
  "tool_timeout_ms",
  "required",
  "config",
];
const LAUNCH_KEYS = ["command", "path", "package"];
const TRUST_KEYS = ["trust", "integrity", "grants"];
const KEYS = [...LAUNCH_KEYS, "args", "env", "cwd", ...TRUST_KEYS, ...ADJUSTABLE_KEYS];

export const BUILTIN_PREFIX = "builtin.";

/** What `grants` may name: capabilities a trusted plugin has only by grant (E 7). */
const GRANTABLE: readonly string[] = [
  ...PermissionAction.options.filter((action) => action !== "plugin"),
  "result_truncation",
  "timeout_ms",
  "env.inherit",
  "kernel_config",
  "delegation",
  "messaging",
  "goals",
];

const PACKAGE_NAME = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;

/** Decodes `[plugins]`, in the order of the parsed table. */
export function decodePlugins(
  value: unknown,
  layer: ConfigLayer,
  directory: string,
): Map<string, PluginEntry> {
  const entries = new TableReader(value, ["plugins"]);
  const plugins = new Map<string, PluginEntry>();
  for (const name of entries.keys()) {
    plugins.set(name, decodePlugin(name, entries.value(name), layer, directory));
  }
  return plugins;
}

function decodePlugin(
  name: string,
  value: unknown,
  layer: ConfigLayer,
  directory: string,
): PluginEntry {
  const reader = new TableReader(value, ["plugins", name], KEYS);
  if (!PluginName.safeParse(name).success) {
    throw reader.fail("plugin_invalid", [], "invalid plugin name", "use lower-case a-z 0-9 . _ -");
  }
  if (layer === "workspace") rejectUserOnlyKeys(reader);
  const builtin = name.startsWith(BUILTIN_PREFIX);
  if (builtin) rejectBuiltinKeys(reader);
  const cwd = reader.string("cwd", nonEmpty);
  const integrity = decodeIntegrity(reader);
  const env = reader.texts("env") ?? ENTRY_DEFAULTS.env;
  return {
    name,
    layer,
    launch: builtin ? { kind: "builtin" } : decodeLaunch(reader, directory, env),
    env,
    ...(cwd === undefined ? {} : { cwd }),
    enabled: reader.boolean("enabled") ?? ENTRY_DEFAULTS.enabled,
    interceptionTimeoutMs:
      reader.integer("interception_timeout_ms", { min: 1 }) ?? ENTRY_DEFAULTS.interceptionTimeoutMs,
    startupTimeoutMs:
      reader.integer("startup_timeout_ms", { min: 1 }) ?? ENTRY_DEFAULTS.startupTimeoutMs,
    shutdownGraceMs:
      reader.integer("shutdown_grace_ms", { min: 1 }) ?? ENTRY_DEFAULTS.shutdownGraceMs,
    toolTimeoutMs: reader.integer("tool_timeout_ms", { min: 1 }) ?? ENTRY_DEFAULTS.toolTimeoutMs,
    config: reader.json("config") ?? ENTRY_DEFAULTS.config,
    trust: reader.oneOf("trust", ["untrusted", "trusted"]) ?? ENTRY_DEFAULTS.trust,
    ...(integrity === undefined ? {} : { integrity }),
    grants: reader.strings("grants", grantable) ?? ENTRY_DEFAULTS.grants,
    required: reader.boolean("required") ?? ENTRY_DEFAULTS.required,
  };
}

/** A repository can name a program to run, not raise its tier (C-058). */
function rejectUserOnlyKeys(reader: TableReader): void {
  const key = [...TRUST_KEYS, "required"].find((candidate) => reader.has(candidate));
  if (key === undefined) return;
  throw reader.fail(
    "plugin_invalid",
    key,
    "can be set only in the user configuration",
    "remove it or move it to the user configuration",
  );
}

function rejectBuiltinKeys(reader: TableReader): void {
  const key = [...reader.keys()].find((candidate) => !ADJUSTABLE_KEYS.includes(candidate));
  if (key === undefined) return;
  throw reader.fail("plugin_invalid", key, "cannot be set for a first-party plugin", "remove it");
}

function decodeIntegrity(reader: TableReader): string | undefined {
  const integrity = reader.string("integrity", (text) =>
    Revision.safeParse(text).success ? undefined : "expected sha256: and 64 hex digits",
  );
  if (reader.value("trust") === "trusted" && integrity === undefined) {
    throw reader.fail(
      "missing_key",
      "integrity",
      'trust = "trusted" needs the digest of the manifest',
      "add it",
    );
  }
  return integrity;
}

function decodeLaunch(
  reader: TableReader,
  directory: string,
  env: Readonly<Record<string, string>>,
): PluginLaunch {
  const authored = LAUNCH_KEYS.filter((key) => reader.has(key));
  if (authored.length !== 1) {
    throw reader.fail(
      authored.length === 0 ? "missing_key" : "conflict",
      authored[1] ?? [],
      "expected exactly one of command, path, package",
      authored.length === 0 ? "add one" : "remove the others",
    );
  }
  const command = reader.string("command", nonEmpty);
  if (command !== undefined) {
    if (!isAbsolute(command) && env["PATH"] === undefined) {
      throw reader.fail(
        "invalid_value",
        "command",
        "must be an absolute path, for nothing of the environment is inherited",
        "write the full path or set env.PATH",
      );
    }
    return { kind: "command", command, args: reader.strings("args") ?? [] };
  }
  if (reader.has("args")) {
    throw reader.fail("conflict", "args", "stands only with command", "remove it");
  }
  const path = reader.string("path", nonEmpty);
  if (path !== undefined) return { kind: "path", directory: resolve(directory, path) };
  const name = reader.required(
    "package",
    reader.string("package", (text) =>
      PACKAGE_NAME.test(text) ? undefined : "expected the name of an npm package",
    ),
  );
  return { kind: "package", package: name, directory: findPackage(directory, name) };
}

/** The nearest `node_modules/<name>` at or above the declaring configuration directory. */
function findPackage(from: string, name: string): string | null {
  for (let directory = from; ; directory = dirname(directory)) {
    const candidate = join(directory, "node_modules", name);
    if (existsSync(candidate)) return candidate;
    if (dirname(directory) === directory) return null;
  }
}

const grantable: TextRule = (text) =>
  GRANTABLE.includes(text) ? undefined : `expected one of ${GRANTABLE.join(", ")}`;
