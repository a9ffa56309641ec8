import { type Answer, pick, type RecordedRequest, type ScriptedTurn } from "./model-server.ts";

/** What providers answer to a request that is longer than their model takes. */
export const TOO_LONG: Answer = {
  status: 400,
  body: {
    error: {
      message: "This model's maximum context length is exceeded",
      code: "context_length_exceeded",
    },
  },
};

/** Part of the instructions of the agent that writes summaries. */
const SUMMARY_WORDS = "Write the notes from which you, without any memory of this conversation";

/** The bytes of a request, as a model with four bytes for each token counts them. */
export function tokensOf({ body }: RecordedRequest): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify(body)) / 4);
}

export function isSummaryRequest({ body }: RecordedRequest): boolean {
  return JSON.stringify(body).includes(SUMMARY_WORDS);
}

/** The messages of a request, whatever its wire calls them. */
export function messagesOf({ body }: RecordedRequest): unknown[] {
  const messages = pick(body, "messages") ?? pick(body, "input");
  return Array.isArray(messages) ? (messages as unknown[]) : [];
}

export interface BoundedModel {
  readonly answer: Answer;
  readonly turns: RecordedRequest[];
  readonly summaries: RecordedRequest[];
  readonly refused: RecordedRequest[];
}

/** A model that counts tokens, refuses what is too long, and writes summaries when it is asked for them. */
export function boundedModel(options: {
  readonly limitTokens: number;
  /** From 1. */
  turn(count: number, request: RecordedRequest): ScriptedTurn;
  summary?(count: number, request: RecordedRequest): Answer;
}): BoundedModel {
  const { limitTokens, turn } = options;
  const summary = options.summary ?? ((count) => ({ text: `summary ${count}` }));
  const turns: RecordedRequest[] = [];
  const summaries: RecordedRequest[] = [];
  const refused: RecordedRequest[] = [];
  const answer: Answer = (request) => {
    const input = tokensOf(request);
    if (input > limitTokens) {
      refused.push(request);
      return TOO_LONG;
    }
    const usage = { input, output: 20 };
    if (!isSummaryRequest(request)) {
      turns.push(request);
      return { usage, ...turn(turns.length, request) };
    }
    summaries.push(request);
    const written = summary(summaries.length, request);
    return typeof written === "object" && "text" in written ? { usage, ...written } : written;
  };
  return { answer, turns, summaries, refused };
}
