import { controlFreeText } from "./scalars.ts";

/** Largest file that the kernel takes from a plugin's scratch directory (E-110). */
export const MAX_SCRATCH_IMPORT_BYTES = 64 * 1024 * 1024;

/** A regular file directly inside the plugin's scratch directory: its bare name, 1 to 255 bytes (E-110). */
export const ScratchName = controlFreeText(1, 255).refine(
  (name) => name !== "." && name !== ".." && !/[/\\]/.test(name),
  { error: "expected the bare name of a file in the scratch directory" },
);

/** True when exactly one of the values is there. */
export function isOneOf(...values: readonly unknown[]): boolean {
  return values.filter((value) => value !== undefined).length === 1;
}
