import { SessionGet } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { describeEvent, describeSession } from "../../describe-session.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";

export const showSession = defineCommand({
  summary: "Show one session: what was asked, called and answered.",
  description:
    "Each line begins with the number of its event. With --json the whole record: the session and every event of its log.",
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: { ...attachFlags, "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const sessionId = requireSessionId(args.id, "session show");
    const { session, events } = await withClient(flags, async (client) => ({
      ...(await client.request(SessionGet, { session_id: sessionId })),
      events: await client.readEvents(sessionId),
    }));
    if (flags.json) {
      printJson({ session, events });
      return undefined;
    }
    print(describeSession(session));
    for (const event of events) {
      const line = describeEvent(event.payload);
      if (line !== null) print(`${String(event.seq).padStart(5)}  ${event.timestamp}  ${line}`);
    }
    return undefined;
  },
});
