import { boolean } from "@oclif/core/flags";
import type { BooleanFlag } from "@oclif/core/interfaces";

/** A flag without a value: absent means false. */
export function switchFlag(description: string): BooleanFlag<boolean> {
  return boolean<boolean>({ description, default: false });
}
