import { resolve } from "node:path";
import { string } from "@oclif/core/flags";

/** `--data-dir` of every command that meets sessions. */
export const dataDirFlag = string({
  description: "where sessions are kept, if not in ~/.cookie-agent",
  parse: (text) => Promise.resolve(text === "" ? text : resolve(text)),
});

/** As an option of the kernel, which wants no undefined. */
export function dataDirOption(dataDir: string | undefined): { dataDir?: string } {
  return dataDir === undefined ? {} : { dataDir };
}
