import { SessionFork } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { beforeRuns, branchPointFlags } from "../../branch-point.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";

export const forkSession = defineCommand({
  summary: "Start a new session with the conversation of another one, and print its id.",
  description:
    "The other session stays as it is; it may belong to another process or be running. Files are neither copied nor changed.",
  examples: [
    '<%= config.bin %> run --resume-session "$(<%= config.bin %> session fork 01a22e96-4c2c-7000-8655-8661b67d0ebf --runs 1)" "another way"',
  ],
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: { ...branchPointFlags, ...attachFlags, "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const session_id = requireSessionId(args.id, "session fork");
    const forked = await withClient(flags, async (client) => {
      const events = flags.through === undefined ? await client.readEvents(session_id) : [];
      const last = flags.runs === undefined ? events.at(-1)?.seq : beforeRuns(events, flags.runs);
      return client.request(SessionFork, { session_id, through_seq: flags.through ?? last ?? 1 });
    });
    if (flags.json) printJson(forked);
    else print(forked.session_id);
    return undefined;
  },
});
