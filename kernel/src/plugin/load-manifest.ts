import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import {
  CookieError,
  checkValue,
  MAX_MANIFEST_BYTES,
  Manifest,
  PLUGIN_PROTOCOL_VERSION,
  type Revision,
  type TrustTier,
} from "@cookie-agent/sdk/protocol";
import type { FirstPartyFacts } from "../config/first-party.ts";
import { withinLimit } from "../support/bounded-work.ts";
import { sha256Hex } from "../support/digest.ts";
import { hasCode } from "../support/has-code.ts";
import { checkDeclarations, checkSchema } from "./check-declaration.ts";

const MANIFEST_FILE = "cookie-plugin.json";
const MAX_CHECK_MS = 5000;

export interface ManifestFile {
  readonly bytes: Buffer;
  readonly digest: Revision;
}

/** Reads `cookie-plugin.json` without looking into it (E-030). Throws `invalid_declaration`. */
export async function readManifestFile(directory: string): Promise<ManifestFile> {
  let bytes: Buffer;
  try {
    bytes = await readBounded(join(directory, MANIFEST_FILE));
  } catch (error) {
    throw new CookieError(
      "invalid_declaration",
      `${MANIFEST_FILE} cannot be read (${describe(error)}); check the plugin's path`,
      { cause: error },
    );
  }
  if (bytes.byteLength > MAX_MANIFEST_BYTES) {
    throw invalid(`${MANIFEST_FILE} is larger than ${MAX_MANIFEST_BYTES} bytes`);
  }
  return { bytes, digest: `sha256:${sha256Hex(bytes)}` };
}

/**
 * The shipped plugins found in these package folders, in this order. A folder without manifest is left out: the
 * kernel runs with whatever plugins there are. Throws for a manifest that is wrong.
 */
export async function loadFirstParty(directories: readonly string[]): Promise<FirstPartyFacts[]> {
  const found = await Promise.all(directories.map(loadShippedManifest));
  return found.filter((facts) => facts !== undefined);
}

async function loadShippedManifest(directory: string): Promise<FirstPartyFacts | undefined> {
  let file: ManifestFile;
  try {
    file = await readManifestFile(directory);
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
  const manifest = parseShape(file.bytes);
  await checkDeclarations(manifest.tools ?? [], "first_party");
  return { id: manifest.name, directory, manifest };
}

/**
 * Parses and completely checks the manifest of a third-party plugin (E-034). Throws `invalid_declaration` naming the
 * member, or `version_mismatch` when the package does not speak this protocol (E-021).
 */
export async function parseManifest(
  bytes: Uint8Array,
  expectedName: string,
  tier: TrustTier,
): Promise<Manifest> {
  const manifest = parseShape(bytes);
  if (manifest.name !== expectedName) {
    throw invalid(
      `${MANIFEST_FILE}: name: the manifest says ${manifest.name}, the entry ${expectedName}`,
    );
  }
  checkProtocol(manifest);
  await checkDeclarations(manifest.tools ?? [], tier);
  if (manifest.config_schema !== undefined) {
    await checkSchema("config_schema", manifest.config_schema, tier);
  }
  return manifest;
}

/** Fails before any process is started when no common version exists (E-021). */
export function checkProtocol(manifest: Manifest): void {
  if (manifest.protocol.includes(PLUGIN_PROTOCOL_VERSION)) return;
  const found = manifest.protocol.join(", ");
  throw new CookieError(
    "version_mismatch",
    `the plugin speaks protocol ${found}, this kernel speaks ${PLUGIN_PROTOCOL_VERSION}; install a matching version`,
    { data: { expected: PLUGIN_PROTOCOL_VERSION, found } },
  );
}

/** Checks an entry's `config` table against the plugin's `config_schema`. Throws `invalid_declaration`. */
export async function checkConfig(manifest: Manifest, config: unknown): Promise<void> {
  if (manifest.config_schema === undefined) return;
  const { Ajv2020 } = await import("../support/json-schema-2020.ts");
  const { linearRegExp } = await import("../support/linear-reg-exp.ts");
  const code = { regExp: linearRegExp };
  const ajv = new Ajv2020({ strict: false, logger: false, inlineRefs: false, code });
  const { config_schema: schema } = manifest;
  let valid: boolean;
  try {
    valid = withinLimit(
      () => ajv.validate(schema, config),
      MAX_CHECK_MS,
      () => new Error("checking the entry's config against it does not end"),
    );
  } catch (error) {
    throw invalid(`config_schema: ${describe(error)}`);
  }
  if (!valid) throw invalid(`config: ${ajv.errorsText(ajv.errors, { dataVar: "config" })}`);
}

function parseShape(bytes: Uint8Array): Manifest {
  const checked = checkValue(Manifest, parseJson(bytes), "the file");
  if (checked.ok) return checked.value;
  throw invalid(`${MANIFEST_FILE}: ${checked.field}: ${checked.problem}`);
}

async function readBounded(path: string): Promise<Buffer> {
  // O_NONBLOCK: opening a pipe must not wait for its other end.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.allocUnsafe(MAX_MANIFEST_BYTES + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.byteLength - length, null);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.byteLength) break;
    }
    return Buffer.from(buffer.subarray(0, length));
  } finally {
    await file.close();
  }
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid(`${MANIFEST_FILE} is not JSON in UTF-8`);
  }
}

function isMissingFile(error: unknown): boolean {
  return error instanceof Error && hasCode(error.cause, "ENOENT");
}

function describe(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string")
    return error.code;
  return error instanceof Error ? error.message : "unknown error";
}

function invalid(message: string): CookieError {
  return new CookieError("invalid_declaration", message);
}
