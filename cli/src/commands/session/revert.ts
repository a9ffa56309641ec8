import { SessionRevert } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { beforeRuns, branchPointFlags } from "../../branch-point.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { printable } from "../../printable.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";

export const revertSession = defineCommand({
  summary: "Take back the last run of a session, or more; files stay as they are.",
  description:
    "What was said stays in the session's record and is no longer told to the model. Nothing in the working directory is changed back.",
  examples: [
    "<%= config.bin %> session revert 01a22e96-4c2c-7000-8655-8661b67d0ebf",
    "<%= config.bin %> session revert 01a22e96-4c2c-7000-8655-8661b67d0ebf --runs 2",
  ],
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: { ...branchPointFlags, ...attachFlags, "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const session_id = requireSessionId(args.id, "session revert");
    const reverted = await withClient(flags, async (client) => {
      const through_seq =
        flags.through ?? beforeRuns(await client.readEvents(session_id), flags.runs ?? 1);
      const result = await client.request(SessionRevert, { session_id, through_seq });
      return { through_seq, ...result };
    });
    if (flags.json) {
      printJson(reverted);
      return undefined;
    }
    print(`the session ends with its event ${reverted.through_seq} again; files stay as they are`);
    const { instructions_override: instructions } = reverted;
    if (instructions !== undefined) print(`a plugin suggests to say: ${printable(instructions)}`);
    return undefined;
  },
});
