import { createHash } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { open } from "node:fs/promises";
import { delimiter, isAbsolute, join } from "node:path";
import { checkValue } from "../../protocol/check-value.ts";
import { CookieError } from "../../protocol/errors.ts";
import { MAX_MANIFEST_BYTES, Manifest } from "../../protocol/manifest.ts";

/** A plugin as the kit starts it. */
export interface Subject {
  /** Null for a plugin without a manifest. */
  readonly manifest: Manifest | null;
  readonly manifestDigest: string | null;
  readonly command: string;
  readonly args: readonly string[];
  /** Entry of a plugin that can run in a shared host; null for programs of their own. */
  readonly entry: string | null;
}

/** Reads the manifest of a folder and plans its start (E-030, E-031). Throws `invalid_declaration`. */
export async function readSubject(directory: string): Promise<Subject> {
  const bytes = await readManifest(join(directory, "cookie-plugin.json"));
  const manifest = parse(bytes);
  const manifestDigest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const { runtime } = manifest;
  if (runtime.kind === "node") {
    const entry = join(directory, runtime.entry);
    return { manifest, manifestDigest, command: process.execPath, args: [entry], entry };
  }
  const isFile = /[/\\]/.test(runtime.command);
  const command =
    isFile && !isAbsolute(runtime.command) ? join(directory, runtime.command) : runtime.command;
  return { manifest, manifestDigest, command, args: runtime.args ?? [], entry: null };
}

/** The first of these programs that a process without an environment of its own would not find. */
export function findMissingProgram(
  programs: readonly string[],
  path: string = "/usr/local/bin:/usr/bin:/bin",
): string | undefined {
  return programs.find(
    (program) => !path.split(delimiter).some((folder) => isExecutable(join(folder, program))),
  );
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function readManifest(file: string): Promise<Buffer> {
  let bytes: Buffer;
  try {
    // O_NONBLOCK: opening a pipe must not wait for its other end.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const buffer = Buffer.allocUnsafe(MAX_MANIFEST_BYTES + 1);
      const { bytesRead } = await handle.read(buffer, 0, buffer.byteLength, 0);
      bytes = buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new CookieError("invalid_declaration", `${file} cannot be read; write the manifest`, {
      cause: error,
    });
  }
  if (bytes.byteLength <= MAX_MANIFEST_BYTES) return bytes;
  throw new CookieError(
    "invalid_declaration",
    `${file} is larger than ${MAX_MANIFEST_BYTES} bytes`,
  );
}

function parse(bytes: Buffer): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new CookieError("invalid_declaration", "cookie-plugin.json is not JSON in UTF-8");
  }
  const checked = checkValue(Manifest, value, "the file");
  if (checked.ok) return checked.value;
  throw new CookieError(
    "invalid_declaration",
    `cookie-plugin.json: ${checked.field}: ${checked.problem}`,
  );
}
