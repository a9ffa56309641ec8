import { readFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { CookieError } from "../../protocol/errors.ts";
import { JsonObject } from "../../protocol/scalars.ts";

/** The file in a plugin's folder that says which calls may be made to try it. */
export const SAMPLES_FILE = "conformance.json";

/** Files of the workspace: path below it, and content. */
const Files = z.record(z.string().regex(/^(?!\/)(?!.*\.\.)[^\\]+$/), z.string());

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
  let text: string;
  try {
    text = await readFile(join(directory, SAMPLES_FILE), "utf8");
  } catch {
    return {};
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CookieError("invalid_declaration", `${SAMPLES_FILE} is not JSON`);
  }
  const parsed = ConformanceSamples.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const member = issue?.path.map(String).join(".") || "the file";
  throw new CookieError(
    "invalid_declaration",
    `${SAMPLES_FILE}: ${member}: ${issue?.message ?? "invalid"}`,
  );
}
