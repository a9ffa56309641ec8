import {
  HOOK_LIMITS,
  type InjectedMessage,
  type ModelSelection,
  utf8Length,
} from "@cookie-agent/sdk/protocol";
import type { HookChain, HookOutcome } from "../plugin/hook-chain.ts";
import type { HookFacts, HookSite } from "../plugin/hook-site.ts";
import { sha256Hex } from "../support/digest.ts";
import type { AdmittedRun } from "./admit-run.ts";

/** Shows what a person said before it is committed; passes with the text to commit (E-160). */
export function beforeInput(
  hooks: HookChain,
  site: HookSite,
  text: string,
  signal: AbortSignal,
): Promise<HookOutcome<string>> {
  return hooks.run(
    "user_before_input",
    site,
    {
      state: text,
      facts: (current) => ({ text: current }),
      take: (current, { action, new_text: next, reason }) =>
        action === "handled" ? { kind: "handled", reason } : { kind: "go", state: next ?? current },
    },
    signal,
  );
}

/** Asks before a model is used that was not used before it. */
export function beforeSelect(
  hooks: HookChain,
  site: HookSite,
  change: {
    readonly from: ModelSelection | null;
    readonly to: ModelSelection;
    readonly source: HookFacts<"model_before_select">["source"];
  },
  signal: AbortSignal,
): Promise<HookOutcome<null>> {
  const { from, to, source } = change;
  return hooks.run(
    "model_before_select",
    site,
    {
      state: null,
      facts: () => ({ ...(from !== null && { from }), to, source }),
      take: (state, { action, reason }) =>
        action === "block" ? { kind: "block", reason } : { kind: "go", state },
    },
    signal,
  );
}

interface Setup {
  readonly systemPrompt: string;
  readonly injected: readonly InjectedMessage[];
}

/** Shows a run while it is set up; passes with the run as it then begins. */
export async function beforeStart(
  hooks: HookChain,
  site: HookSite,
  start: { readonly run: AdmittedRun; readonly input: string },
  signal: AbortSignal,
): Promise<HookOutcome<AdmittedRun>> {
  const { run, input } = start;
  const setup: Setup = { systemPrompt: run.systemPrompt, injected: [] };
  const outcome = await hooks.run(
    "agent_before_start",
    site,
    {
      state: setup,
      facts: ({ systemPrompt, injected }) => ({
        agent_path: [run.agent.agent],
        prompt_context: {
          session_id: site.sessionId,
          input,
          system_prompt: systemPrompt,
          injected_messages: [...injected],
        },
      }),
      take: ({ systemPrompt, injected }, answer) => {
        const addition = answer.append_to_system_prompt ?? answer.addendum;
        const base = answer.replace_system_prompt ?? systemPrompt;
        const next = addition === undefined ? base : `${base}\n\n${addition}`;
        if (utf8Length(next) > HOOK_LIMITS.systemPromptBytes) {
          const problem = `the system prompt exceeds ${HOOK_LIMITS.systemPromptBytes} bytes`;
          return { kind: "invalid", problem };
        }
        const message = answer.inject_message;
        const all = message === undefined ? injected : [...injected, message];
        return { kind: "go", state: { systemPrompt: next, injected: all } };
      },
    },
    signal,
  );
  return outcome.kind === "passed"
    ? { kind: "passed", state: withSetup(run, outcome.state) }
    : outcome;
}

function withSetup(run: AdmittedRun, { systemPrompt, injected }: Setup): AdmittedRun {
  if (systemPrompt === run.systemPrompt) return { ...run, injected };
  const promptFingerprint = sha256Hex(systemPrompt);
  return {
    ...run,
    injected,
    systemPrompt,
    promptFingerprint,
    agent: {
      ...run.agent,
      composed_prompt: systemPrompt,
      prompt_fingerprint: promptFingerprint,
    },
  };
}
