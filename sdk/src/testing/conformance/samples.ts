import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { checkValue } from "../../protocol/check-value.ts";
import { CookieError } from "../../protocol/errors.ts";
import { JsonObject } from "../../protocol/scalars.ts";

/** The file in a plugin's folder that says which calls may be made to try it. */
export const SAMPLES_FILE = "conformance.json";

/** Files of the workspace: path below it, and content. */
const Files = z.record(z.string().regex(/^(?!\/)(?!.*\.\.)[^\\]+$/), z.string());

/** A larger file is not what it seems to be. */
const MAX_BYTES = 16 * 1024 * 1024;

const SampleCall = z.strictObject({
  tool: z.string(),
  arguments: JsonObject,
  /** What has to lie in the workspace before. */
  files: Files.optional(),
});
export type SampleCall = z.infer<typeof SampleCall>;

/**
 * What only the author can know: calls that may really be made, in a workspace of their own. Without it nothing is
 * called, because a tool may do anything.
 */
export const ConformanceSamples = z.strictObject({
  /** Programs that must be there; without one nothing is checked. */
  requires: z.array(z.string()).optional(),
  /** The `config` table. */
  config: JsonObject.optional(),
  /** What the entry's `env` would hold. */
  env: z.record(z.string(), z.string()).optional(),
  /** Calls that succeed. */
  calls: z.array(SampleCall).optional(),
  /** Of a tool that prepares: `change` is written between preparation and call, which must then be refused. */
  changed: z.array(SampleCall.extend({ change: Files })).optional(),
  /** A call that goes on until it is cancelled. */
  cancel: SampleCall.optional(),
  /** A call that reads its input to the end, and what is typed into it. */
  stdin: SampleCall.extend({ data: z.string() }).optional(),
  /** A call that prints this many bytes as fast as it can. */
  flood: SampleCall.extend({ bytes: z.int().min(1) }).optional(),
});
export type ConformanceSamples = z.infer<typeof ConformanceSamples>;

/** The samples of a plugin's folder; none when the file is missing. Throws `invalid_declaration` naming the member. */
export async function readSamples(directory: string): Promise<ConformanceSamples> {
  const text = await readText(join(directory, SAMPLES_FILE));
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CookieError("invalid_declaration", `${SAMPLES_FILE} is not JSON`);
  }
  const checked = checkValue(ConformanceSamples, value, "the file");
  if (checked.ok) return checked.value;
  throw new CookieError(
    "invalid_declaration",
    `${SAMPLES_FILE}: ${checked.field}: ${checked.problem}`,
  );
}

/** Undefined when there is no such file; one that cannot be read must not look like a plugin without calls. */
async function readText(path: string): Promise<string | undefined> {
  const refuse = (why: string, cause?: unknown) =>
    new CookieError("invalid_declaration", `${SAMPLES_FILE} cannot be read: ${why}`, { cause });
  try {
    // O_NONBLOCK: opening a pipe must not wait for its other end.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const found = await file.stat();
      if (!found.isFile()) throw refuse("it is no regular file");
      if (found.size > MAX_BYTES) throw refuse(`it is larger than ${MAX_BYTES} bytes`);
      return await file.readFile("utf8");
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof CookieError) throw error;
    const { code = "I/O error" } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw refuse(code, error);
  }
}
