import {
  type EventPayload,
  type SessionMeta,
  type StoredEvent,
  VisibleBranch,
} from "@cookie-agent/sdk/protocol";
import { describeCallError } from "./describe-session.ts";
import { printable, printableLines } from "./printable.ts";

/** The conversation of a session for people, without what a revert has hidden; safe on a terminal. */
export function sessionMarkdown(session: SessionMeta, events: readonly StoredEvent[]): string {
  const { agent, model } = session.creation_selection;
  const facts = [
    ["Session", session.session_id],
    ["Directory", session.cwd_identity],
    ["Agent", `${agent}, ${model.model}`],
    ["State", session.status],
    ["Last activity", session.last_activity],
  ];
  const head = [
    `# ${oneLine(session.title ?? "Untitled")}`,
    facts.map(([name, value]) => `- ${name}: ${oneLine(value ?? "")}`).join("\n"),
  ];
  const parts = visible(events).flatMap(({ payload }) => partOf(payload) ?? []);
  return `${[...head, ...parts].join("\n\n")}\n`;
}

function visible(events: readonly StoredEvent[]): StoredEvent[] {
  const branch = new VisibleBranch();
  for (const { payload, seq } of events) {
    if (payload.type === "session_reverted") branch.revert(payload.through_seq, seq);
  }
  return events.filter(({ seq }) => branch.isVisible(seq));
}

function partOf(payload: EventPayload): string | null {
  switch (payload.type) {
    case "user_input_submitted":
      return `## User\n\n${prose(payload.input)}`;
    case "model_turn_committed": {
      const texts = payload.turn.content.flatMap((part) =>
        part.type === "text" ? [part.text] : [],
      );
      const text = texts.join("").trim();
      return text === "" ? null : `## Model\n\n${prose(text)}`;
    }
    case "tool_call_started": {
      const { title, primary_argument } = payload.presentation;
      return `### ${oneLine(`${payload.tool}: ${primary_argument ?? title}`)}`;
    }
    case "tool_call_terminated": {
      const { error, result, outcome } = payload;
      const text = error === null ? (result?.output ?? "") : describeCallError(error);
      return text.trim() === "" ? `(${outcome})` : fenced(text);
    }
    case "run_failed":
      return `*The run failed: ${oneLine(payload.error.message)}*`;
    case "run_cancelled":
      return `*The run was cancelled${payload.reason === null ? "" : `: ${oneLine(payload.reason)}`}*`;
    case "run_interrupted":
      return "*The run was interrupted*";
    default:
      return null;
  }
}

/** Text that may hold Markdown of its own; its headings stay below ours. */
function prose(text: string): string {
  return printableLines(text.trim()).replace(/^(#{1,6}) /gm, "\\$1 ");
}

/** A block that its content cannot end. */
function fenced(text: string): string {
  const shown = printableLines(text.replace(/\n+$/, ""));
  const longest = Math.max(2, ...[...shown.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${shown}\n${fence}`;
}

function oneLine(text: string): string {
  return printable(text).trim();
}
