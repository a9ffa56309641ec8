import {
  CookieError,
  type HookName,
  type HookResult,
  isCookieError,
  type PluginDiagnosticKind,
} from "@cookie-agent/sdk/protocol";
import { isNestedDeeper, MAX_JSON_DEPTH } from "../support/json-depth.ts";
import { safeLines, safeText } from "../support/safe-text.ts";
import type { HookDiagnostics } from "./hook-diagnostics.ts";
import type { HookFacts, HookPlugins, HookSite } from "./hook-site.ts";

/** What one plugin's answer amounts to. */
export type HookStep<S> =
  | { readonly kind: "go"; readonly state: S }
  /** Ends the chain (E-163). */
  | { readonly kind: "block"; readonly reason: string | undefined }
  /** Ends the chain because the plugin has seen to it itself. */
  | { readonly kind: "handled"; readonly reason: string | undefined }
  /** The change is skipped. */
  | {
      readonly kind: "invalid";
      readonly problem: string;
      readonly diagnostic?: "unsupported_capability";
    }
  /** The change cannot be skipped: what is guarded fails with this (E-164). */
  | { readonly kind: "fail"; readonly error: CookieError };

/** How a chain ended. */
export type HookOutcome<S> =
  | { readonly kind: "passed"; readonly state: S }
  /** `failure`: a required plugin failed (E-204), or its change could not be skipped. */
  | {
      readonly kind: "blocked" | "handled" | "failure";
      readonly plugin: string;
      /** For people and for the model, several lines at most. */
      readonly reason: string;
      readonly error?: CookieError;
    };

export interface HookPass<H extends HookName, S> {
  /** What the first plugin sees. */
  readonly state: S;
  facts(state: S): HookFacts<H>;
  /** Judges an answer whose shape is right. */
  take(state: S, answer: HookResult<H>, plugin: string): HookStep<S> | Promise<HookStep<S>>;
}

const MAX_REASON_BYTES = 4096;
const MAX_DIAGNOSTIC_BYTES = 200;

/**
 * Plugins that look at something on its way, one after another; each sees what the one before has made of it (E-160).
 * A plugin that fails is skipped, unless the user requires it (E-162, E-204).
 */
export class HookChain {
  readonly #plugins: HookPlugins;
  readonly #diagnostics: HookDiagnostics;

  constructor(plugins: HookPlugins, diagnostics: HookDiagnostics) {
    this.#plugins = plugins;
    this.#diagnostics = diagnostics;
  }

  /** False: nobody looks, so nothing has to be made ready for it. */
  has(...hooks: readonly HookName[]): boolean {
    return hooks.some((hook) => this.#plugins.interceptors(hook).length > 0);
  }

  /**
   * Rejects with `cancelled` when `signal` aborts, whatever the plugin does. Aborting with a `CookieError` as reason
   * cancels nothing: it is the failure of each plugin that has not answered yet.
   */
  async run<H extends HookName, S>(
    hook: H,
    site: HookSite,
    pass: HookPass<H, S>,
    signal: AbortSignal,
  ): Promise<HookOutcome<S>> {
    let { state } = pass;
    const note = (plugin: string, kind: PluginDiagnosticKind, text: string) =>
      this.#diagnostics.note(
        site.sessionId,
        plugin,
        kind,
        safeText(`${hook}: ${text}`, MAX_DIAGNOSTIC_BYTES),
      );
    for (const { plugin, required } of this.#plugins.interceptors(hook)) {
      const failure = (problem: string) => ({
        kind: "failure" as const,
        plugin,
        reason: `the required plugin ${plugin} failed at ${hook}: ${safeText(problem, 1024)}`,
      });
      const failsClosed = required && hook !== "provider_after_response";
      let answer: HookResult<H> | undefined;
      try {
        answer = await this.#ask(plugin, hook, { site, facts: pass.facts(state) }, signal);
      } catch (error) {
        refuseCancelled(signal);
        const cause = isCookieError(signal.reason) ? signal.reason : error;
        if (!isCookieError(cause)) throw cause;
        note(plugin, kindOf(cause), cause.message);
        if (failsClosed) return failure(cause.message);
        continue;
      }
      if (answer === undefined) continue;
      const step = await pass.take(state, answer, plugin);
      switch (step.kind) {
        case "go":
          state = step.state;
          break;
        case "block":
        case "handled": {
          const reason = reasonOf(step.reason, plugin);
          if (step.kind === "handled") return { kind: "handled", plugin, reason };
          note(plugin, "hook_blocked", reason);
          return { kind: "blocked", plugin, reason };
        }
        case "invalid":
          note(plugin, step.diagnostic ?? "invalid_modification", step.problem);
          // What a guard wanted changed must not go on unchanged.
          if (failsClosed) return failure(step.problem);
          break;
        case "fail":
          note(plugin, "invalid_modification", step.error.message);
          return { kind: "failure", plugin, reason: step.error.message, error: step.error };
      }
    }
    refuseCancelled(signal);
    return { kind: "passed", state };
  }

  async #ask<H extends HookName>(
    plugin: string,
    hook: H,
    request: { readonly site: HookSite; readonly facts: HookFacts<H> },
    signal: AbortSignal,
  ): Promise<HookResult<H> | undefined> {
    const answer = await this.#plugins.intercept(plugin, hook, request, signal);
    if (!isNestedDeeper(answer, MAX_JSON_DEPTH)) return answer;
    throw new CookieError("protocol_violation", "the answer is nested too deeply");
  }
}

function refuseCancelled({ aborted, reason }: AbortSignal): void {
  if (!aborted || isCookieError(reason)) return;
  throw new CookieError("cancelled", "cancelled while a hook ran");
}

function kindOf({ code }: CookieError): PluginDiagnosticKind {
  if (code === "timeout") return "interception_timeout";
  return code === "resource_limit" ? "oversized_event" : "interception_crash";
}

function reasonOf(reason: string | undefined, plugin: string): string {
  const text = safeLines(reason ?? "", MAX_REASON_BYTES).trim();
  return text === "" ? `the plugin ${plugin} gave no reason` : text;
}
