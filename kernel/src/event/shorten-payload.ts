import type { AssistantPart, EventPayload } from "@cookie-agent/sdk/protocol";
import { isKnownUsage, type LineContext } from "./line-context.ts";

/** The payload as a line of the log holds it: without the members of every turn that readers take as null (S-052). */
export function shortenPayload(payload: EventPayload, context: LineContext): object {
  switch (payload.type) {
    case "model_turn_committed": {
      const { turn } = payload;
      return {
        ...payload,
        turn: { ...turn, content: turn.content.map(shortenPart), usage: withoutNulls(turn.usage) },
      };
    }
    case "model_usage_recorded":
      return withoutNulls({
        ...payload,
        usage: isKnownUsage(context, payload.model_turn_seq, payload.usage)
          ? null
          : withoutNulls(payload.usage),
      });
    case "tool_call_started":
      return { ...payload, owner: withoutNulls(payload.owner) };
    case "tool_call_terminated": {
      const { owner, result, error, ...rest } = payload;
      return {
        ...rest,
        owner: withoutNulls(owner),
        result: result && withoutNulls(result),
        ...(error !== null && { error }),
      };
    }
    default:
      return payload;
  }
}

function shortenPart(part: AssistantPart): object {
  if (part.type !== "tool_call") return part;
  // The input is the model's own value, in which null means something.
  const { input, ...rest } = part;
  return { ...withoutNulls(rest), input };
}

function withoutNulls(members: object): object {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}
