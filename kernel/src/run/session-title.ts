import { setImmediate } from "node:timers/promises";
import type { EventPayload } from "@cookie-agent/sdk/protocol";
import type { SessionTitleConfig } from "../config/config.ts";
import { OFFLINE_MODEL } from "../model/adaptors/offline.ts";
import { excerptTitle } from "./excerpt-title.ts";
import { internalAgentOwner } from "./internal-agent-owner.ts";
import type { RunContext } from "./run-context.ts";

export interface SessionTitlePorts {
  readonly config: SessionTitleConfig;
  /** Nobody looks on, and the process ends with the run: no model is asked. */
  readonly headless: boolean;
  /** Told when the search for a title has ended; it counts as ended once this is done. */
  onSearched(): Promise<void>;
}

interface Search {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * Names a session that nobody has named. A model is asked beside the run, which never waits for it; what it answers
 * after the run is still taken. Where it gives no title, the beginning of the first message becomes one (S-031).
 */
export class SessionTitle {
  readonly #ports: SessionTitlePorts;
  #search: Search | null = null;

  constructor(ports: SessionTitlePorts) {
    this.#ports = ports;
  }

  /** True while a model is asked for a title. */
  get isSearching(): boolean {
    return this.#search !== null;
  }

  /** After a committed turn: sees to a title, if the session needs one (S-029). */
  propose(context: RunContext, signal: AbortSignal): void {
    const { config, headless } = this.#ports;
    const { view } = context;
    if (!config.generateOnFirstTurn || !isOpen(context) || this.#search !== null) return;
    if (view.origin?.type !== "root" || view.userInputs.first.length === 0) return;
    // The answer of the offline model is the same for every session, so the excerpt says more (C 5.14).
    const isOffline = context.run.chain[context.position.index]?.selection.model === OFFLINE_MODEL;
    if (headless || isOffline) {
      this.#holdExcerpt(context);
      return;
    }
    const controller = new AbortController();
    const ended = this.#ask(context, AbortSignal.any([signal, controller.signal])).finally(() => {
      this.#search = null;
      return this.#ports.onSearched();
    });
    this.#search = { controller, ended };
  }

  /** Gives up what is still being asked for; the excerpt is then the title. */
  async close(): Promise<void> {
    this.#search?.controller.abort();
    await this.#search?.ended;
  }

  async #ask(context: RunContext, signal: AbortSignal): Promise<void> {
    try {
      // The calls of the turn go first.
      await setImmediate();
      const { askTitle } = await import("../internal-agent/ask-title.ts");
      const { maxInputMessages, maxChars } = this.#ports.config;
      const inputs = context.view.userInputs.first.slice(0, maxInputMessages);
      const owner = internalAgentOwner(context);
      // What the turn used counts once it is on record.
      if (context.budget !== undefined) await owner.log.flush();
      // Its start becomes durable with what the run records next, so that it costs no sync of its own.
      const log = { ...owner.log, flush: () => Promise.resolve() };
      const proposed = await askTitle({ ...owner, log }, inputs, maxChars, signal);
      if (proposed === null) {
        this.#holdExcerpt(context);
      } else if (isOpen(context)) {
        const { title, invocationId } = proposed;
        hold(context, { kind: "internal_agent_set", title, invocation_id: invocationId });
      }
      await owner.log.flush();
    } catch {
      // A log that cannot be written is the run's to report, and a session without a title lacks little.
    }
  }

  #holdExcerpt(context: RunContext): void {
    const { config } = this.#ports;
    const [first = ""] = context.view.userInputs.first;
    if (!config.fallbackToInputExcerpt || !isOpen(context)) return;
    const title = excerptTitle(first, config.maxChars);
    if (title !== null) hold(context, { kind: "fallback_set", title });
  }
}

/** Nobody has given the session a title since somebody last wished for a new one. */
function isOpen({ view }: RunContext): boolean {
  return view.title === null && !view.titleBlocked;
}

function hold(
  context: RunContext,
  change: Extract<EventPayload, { type: "session_title_committed" }>["change"],
): void {
  const { inputThroughSeq } = context.view;
  context.log.hold([
    context.draft({ type: "session_title_committed", change, input_through_seq: inputThroughSeq }),
  ]);
}
