import {
  type EventPayload,
  SessionGet,
  type SessionId,
  type SessionMeta,
  type StoredEvent,
} from "@cookie-agent/sdk/protocol";
import { Args, Flags } from "@oclif/core";
import { BaseCommand } from "../../base-command.ts";
import { openLocalKernel } from "../../open-kernel.ts";
import { printable } from "../../render-table.ts";

export default class ShowSession extends BaseCommand {
  static override summary = "Show one session: what was asked, called and answered.";
  static override args = { id: Args.string({ description: "session id", required: true }) };
  static override flags = { "data-dir": Flags.string({ description: "where sessions are kept" }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ShowSession);
    const dataDir = flags["data-dir"];
    const sessionId = args.id as SessionId;
    const local = await openLocalKernel({
      headless: true,
      ...(dataDir === undefined ? {} : { dataDir }),
    });
    try {
      const { session } = await local.client.request(SessionGet, { session_id: sessionId });
      const events: StoredEvent[] = [];
      for await (const news of local.client.subscribe(sessionId)) {
        if (news.type === "event") events.push(news.event);
        if (news.type === "event" && news.event.seq >= session.last_event_seq) break;
      }
      if (flags.json) return this.printJson({ session, events });
      this.print(describeSession(session));
      for (const event of events) {
        const line = describeEvent(event.payload);
        if (line !== null) this.print(`${event.timestamp}  ${line}`);
      }
    } finally {
      await local.close();
    }
  }
}

function describeSession(session: SessionMeta): string {
  const lines = [
    `session   ${session.session_id}${session.handle === undefined ? "" : ` (${session.handle})`}`,
    `title     ${printable(session.title ?? "")}`,
    `status    ${session.status}${session.access === "foreign" ? ", owned by another process" : ""}`,
    `agent     ${session.creation_selection.agent}, ${session.creation_selection.model.model}`,
    `directory ${printable(session.cwd_identity)}`,
  ];
  for (const skipped of session.skipped_events) {
    const place = skipped.seq === undefined ? `line ${skipped.line}` : `event ${skipped.seq}`;
    lines.push(`unreadable ${place}: ${printable(skipped.reason)}`);
  }
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function describeEvent(payload: EventPayload): string | null {
  switch (payload.type) {
    case "user_input_submitted":
      return `user       ${excerpt(payload.input)}`;
    case "model_turn_committed": {
      const text = payload.turn.content
        .filter((part) => part.type === "text")
        .map((part) => part.text)
        .join("");
      return text === "" ? null : `model      ${excerpt(text)}`;
    }
    case "tool_call_started":
      return `call       ${payload.tool} ${printable(payload.presentation.primary_argument ?? "")}`;
    case "tool_call_terminated":
      return `${payload.outcome.padEnd(10)} ${excerpt(payload.error?.message ?? payload.result?.output ?? "")}`;
    case "approval_finalized":
      return `approval   ${payload.decision.status} by ${payload.decision.source} (${payload.decision.reason})`;
    case "run_completed":
      return "run        completed";
    case "run_failed":
      return `run        failed: ${excerpt(payload.error.message)}`;
    case "run_cancelled":
      return `run        cancelled: ${payload.reason ?? ""}`;
    case "run_interrupted":
      return `run        interrupted: ${payload.reason ?? ""}`;
    default:
      return null;
  }
}

function excerpt(text: string): string {
  const line = printable(text).trim();
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
