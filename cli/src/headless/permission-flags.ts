import { string } from "@oclif/core/flags";

/** What decides where nobody may be asked: of every command that makes calls (C 7.4). */
export const permissionFlags = {
  "permission-mode": string({
    description:
      "what answers where a rule says ask: auto-approve, auto-approve-n, auto-approve-y, ask, yolo",
    default: "auto-approve",
  }),
  "allowed-tools": string({
    description:
      "never ask for these: read, write, bash, delegate, mcp, plugin, plugin:<name>, skill:<name>",
    multiple: true,
    multipleNonGreedy: true,
  }),
};
