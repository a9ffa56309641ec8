import {
  CookieError,
  HOOK_LIMITS,
  type ToolCallError,
  type ToolResult,
} from "@cookie-agent/sdk/protocol";
import type { HookChain } from "../plugin/hook-chain.ts";
import { safeLines, safeText } from "../support/safe-text.ts";
import { MAX_OUTPUT_BYTES } from "./complete-call.ts";
import {
  type CallEnd,
  type CommittedTurn,
  type DispatchStages,
  MAX_ERROR_BYTES,
  siteOf,
} from "./dispatch-stages.ts";
import type { PreparedCall } from "./prepare-call.ts";

/** As long as the call itself may clean up (E-105). */
const CANCEL_PATIENCE_MS = 2000;
const WITHHELD = "what the call said is withheld";

/**
 * Shows how one call ended to the plugins that want to see it, before it is recorded. They change what the model
 * reads: display, metadata and what was captured stay as the tool left them. A cancelled call is shown too, because
 * what it printed is kept; whoever does not answer soon after a cancel has failed.
 */
export async function passAfterResult(
  hooks: HookChain,
  end: CallEnd,
  prepared: PreparedCall,
  turn: CommittedTurn,
  stages: DispatchStages,
  signal: AbortSignal,
): Promise<CallEnd> {
  const patience = openPatience(signal);
  try {
    return await pass(hooks, end, { prepared, turn, stages, signal: patience.signal });
  } finally {
    patience.close();
  }
}

/** Not the run's signal: a filter that is not asked would let through what a cancelled call has printed. */
function openPatience(run: AbortSignal): { readonly signal: AbortSignal; close(): void } {
  const over = new AbortController();
  const late = new CookieError("timeout", "the plugin did not answer soon after the cancel");
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => over.abort(late), CANCEL_PATIENCE_MS);
  };
  if (run.aborted) onAbort();
  else run.addEventListener("abort", onAbort, { once: true });
  return {
    signal: over.signal,
    close() {
      run.removeEventListener("abort", onAbort);
      clearTimeout(timer);
    },
  };
}

async function pass(
  hooks: HookChain,
  end: CallEnd,
  within: {
    readonly prepared: PreparedCall;
    readonly turn: CommittedTurn;
    readonly stages: DispatchStages;
    readonly signal: AbortSignal;
  },
): Promise<CallEnd> {
  const { prepared, turn, stages, signal } = within;
  const before = readText(end);
  const outcome = await hooks.run(
    "tool_after_result",
    siteOf(turn, prepared.toolCallId),
    {
      state: before,
      facts: (text) => ({
        tool: prepared.bound.name,
        arguments: prepared.args,
        result_content: text,
        is_error: isError(end),
      }),
      take: (text, { replacement_content: replacement, note }, plugin) => {
        const { maxBytes } = stages.limits;
        if (Buffer.byteLength(replacement ?? "") > maxBytes) {
          return { kind: "invalid", problem: `the replacement is longer than ${maxBytes} bytes` };
        }
        const said =
          note === undefined || note.trim() === ""
            ? []
            : [`[${plugin}: ${safeText(note, HOOK_LIMITS.noteBytes)}]`];
        const lines = [replacement ?? text, ...said];
        const next = lines.filter((line) => line !== "").join("\n");
        if (Buffer.byteLength(next) > MAX_OUTPUT_BYTES) {
          return { kind: "invalid", problem: "there is no room for the note" };
        }
        return { kind: "go", state: next };
      },
    },
    signal,
  );
  if (outcome.kind === "passed") {
    return outcome.state === before ? end : withText(end, prepared, outcome.state);
  }
  const error = end.error ?? { code: "operation_blocked", message: "" };
  const message = safeLines(`${outcome.reason}; ${WITHHELD}`, MAX_ERROR_BYTES);
  return {
    outcome: end.outcome === "completed" ? "failed" : end.outcome,
    result: withheld(resultOf(end, prepared, "")),
    error: { code: error.code, message },
  };
}

/** What the model would read of it. */
function readText({ result, error }: CallEnd): string {
  return [result?.output ?? "", error?.message ?? ""].filter((text) => text !== "").join("\n\n");
}

function withText(end: CallEnd, prepared: PreparedCall, text: string): CallEnd {
  const error: ToolCallError | null = end.error && {
    code: end.error.code,
    message: "the call did not complete; a plugin has changed what it said",
  };
  return { outcome: end.outcome, result: resultOf(end, prepared, text), error };
}

/** Without anything that a model reads; what was captured is kept for people. */
function withheld({ additional_messages: _, ...result }: ToolResult): ToolResult {
  return { ...result, metadata: {}, attachments: [] };
}

function resultOf({ result }: CallEnd, prepared: PreparedCall, output: string): ToolResult {
  if (result !== null) return { ...result, output };
  return {
    title: prepared.presentation.title,
    output,
    display: null,
    metadata: {},
    retained_output: null,
    attachments: [],
  };
}

function isError({ outcome, result }: CallEnd): boolean {
  const flags = result?.metadata["plugin"];
  const isFlagged =
    typeof flags === "object" && flags !== null && "is_error" in flags && flags.is_error === true;
  return outcome !== "completed" || isFlagged;
}
