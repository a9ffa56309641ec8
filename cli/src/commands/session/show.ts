import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  EventsSubscribe,
  SessionGet,
  type SessionId,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { defineCommand } from "../../command.ts";
import { dataDirFlag, dataDirOption } from "../../data-dir-flag.ts";
import { describeEvent, describeSession } from "../../describe-session.ts";
import { withLocalKernel } from "../../open-kernel.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printJson } from "../../standard-streams.ts";

export const showSession = defineCommand({
  summary: "Show one session: what was asked, called and answered.",
  description: "With --json the whole record: the session and every event of its log.",
  args: { id: string({ description: "session id", required: true, ignoreStdin: true }) },
  flags: { "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const sessionId = requireSessionId(args.id, "session show");
    const { session, events } = await withLocalKernel(
      { headless: true, ...dataDirOption(flags["data-dir"]) },
      async ({ client }) => ({
        ...(await client.request(SessionGet, { session_id: sessionId })),
        events: await readEvents(client, sessionId),
      }),
    );
    if (flags.json) {
      printJson({ session, events });
      return undefined;
    }
    print(describeSession(session));
    for (const event of events) {
      const line = describeEvent(event.payload);
      if (line !== null) print(`${event.timestamp}  ${line}`);
    }
    return undefined;
  },
});

/** What is stored now, page by page; nothing is waited for. */
async function readEvents(client: CookieClient, sessionId: SessionId): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (;;) {
    const page = await client.request(EventsSubscribe, {
      session_id: sessionId,
      cursor: events.at(-1)?.seq ?? 0,
      outputs: false,
    });
    // the kernel checked the payloads when they were written
    events.push(...(page.events as unknown as StoredEvent[]));
    if (page.more !== true || page.events.length === 0) return events;
  }
}
