import type {
  FinishReason,
  InternalAgentFailure,
  ModelTurn,
  Usage,
} from "@cookie-agent/sdk/protocol";
import type { ModelRetryConfig } from "../config/config.ts";
import type { BoundModel, ModelRequest } from "../model/bound-model.ts";
import { ModelError } from "../model/model-error.ts";
import { classifyFailure, mayRetry, retryDelayMs } from "../model/retry-policy.ts";
import { sleep } from "../support/deadline.ts";
import { safeText, shown } from "../support/safe-text.ts";

export interface Question {
  readonly model: BoundModel;
  readonly request: ModelRequest;
  readonly retry: ModelRetryConfig;
  /** Of the answer, in UTF-8 bytes. */
  readonly maxOutputBytes: number;
  /** Why nothing may be sent now; null: it may. */
  forbids(): string | null;
}

/** What one model made of a question; `usage` is null where no response came to its end. */
export type CandidateAnswer = {
  readonly attempts: number;
  readonly usage: Usage | null;
} & (
  | { readonly kind: "answered"; readonly text: string; readonly turn: ModelTurn }
  | { readonly kind: "failed"; readonly failure: InternalAgentFailure; readonly isFinal: boolean }
);

/** Asks one model for text, with the retries of a run (S 11.2). A failure is a value, an abort one too. */
export async function askCandidate(
  question: Question,
  signal: AbortSignal,
): Promise<CandidateAnswer> {
  for (let attempts = 1; ; attempts += 1) {
    const forbidden = question.forbids();
    if (forbidden !== null) {
      const failure = fail("agent_unavailable", `no model may be asked: ${forbidden}`);
      return { kind: "failed", attempts, usage: null, failure, isFinal: true };
    }
    try {
      const turn = await readTurn(question, signal);
      return { attempts, usage: turn.usage, ...judge(turn, question.maxOutputBytes) };
    } catch (error) {
      const failed = { kind: "failed", attempts, usage: null } as const;
      if (error instanceof Unusable) return { ...failed, failure: error.failure, isFinal: false };
      if (!(error instanceof ModelError)) {
        const message = error instanceof Error ? error.message : "the model could not be asked";
        return { ...failed, failure: fail("model_failure", message), isFinal: false };
      }
      const { summary } = error;
      const kind = classifyFailure(summary);
      if (mayRetry(question.retry, kind, attempts - 1) && !signal.aborted) {
        const wait = retryDelayMs(
          question.retry,
          attempts - 1,
          summary.retry_after_ms,
          Math.random(),
        );
        if (await sleep(wait, signal)) continue;
      }
      const { message, retryable } = summary;
      return {
        ...failed,
        failure: { code: "model_failure", message, retryable, model_error: summary },
        isFinal: kind === "fail_run",
      };
    }
  }
}

export function fail(code: InternalAgentFailure["code"], message: string): InternalAgentFailure {
  return { code, message: safeText(message, 4096), retryable: false, model_error: null };
}

/** An answer that nobody needs to read to its end. */
class Unusable extends Error {
  readonly failure: InternalAgentFailure;

  constructor(failure: InternalAgentFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

async function readTurn(question: Question, signal: AbortSignal): Promise<ModelTurn> {
  const { model, request, maxOutputBytes } = question;
  let byteLength = 0;
  for await (const part of model.stream(request, signal)) {
    switch (part.type) {
      case "text_delta":
        byteLength += Buffer.byteLength(part.text);
        if (byteLength > maxOutputBytes) throw new Unusable(tooLarge(maxOutputBytes));
        break;
      case "reasoning_delta":
        break;
      case "tool_named":
      case "tool_arguments":
        throw new Unusable(NOT_TEXT);
      case "finish":
        return part.turn;
    }
  }
  throw new Unusable(fail("model_failure", "the model's answer ended before it was complete"));
}

/** Reasoning may stand beside the text and is left out; anything else makes the answer unusable (C-094). */
function judge(turn: ModelTurn, maxOutputBytes: number) {
  const failed = (failure: InternalAgentFailure) =>
    ({ kind: "failed", failure, isFinal: false }) as const;
  if (REFUSED.has(turn.finish_reason)) return failed(DECLINED);
  const texts: string[] = [];
  for (const part of turn.content) {
    if (part.type === "text") texts.push(part.text);
    else if (part.type !== "reasoning") return failed(NOT_TEXT);
  }
  const text = texts.join("");
  if (shown(text).trim() === "") return failed(NO_TEXT);
  if (Buffer.byteLength(text) > maxOutputBytes) return failed(tooLarge(maxOutputBytes));
  return { kind: "answered", text, turn } as const;
}

/** What is said then is about the question, or a part of an answer that somebody cut out. */
const REFUSED: ReadonlySet<FinishReason> = new Set(["refused", "content_filter"]);

const DECLINED = fail("model_failure", "the model or its provider declined to answer");
const NOT_TEXT = fail("invalid_non_text_output", "the answer holds something other than text");
const NO_TEXT = fail("invalid_non_text_output", "the answer holds no text");

function tooLarge(maxOutputBytes: number): InternalAgentFailure {
  return fail("output_too_large", `the answer is longer than ${maxOutputBytes} bytes`);
}
