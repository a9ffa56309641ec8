import { setMaxListeners } from "node:events";
import type { ToolCallId, ToolCallPart } from "@cookie-agent/sdk/protocol";
import { createId } from "../support/create-id.ts";
import type { DispatchContext, PrepareStages } from "./call-context.ts";
import { discardToken, type PreparedCall, prepareCall } from "./prepare-call.ts";
import type { ToolSet } from "./tool-slots.ts";

/** A preparation that began before its turn was committed. */
export interface EarlyPreparation {
  readonly toolCallId: ToolCallId;
  readonly prepared: Promise<PreparedCall>;
}

const MAX_EARLY = 64;

/**
 * Uses the time in which a turn still streams: hosts start when a tool is named, calls are prepared when their
 * arguments are whole (E-057, E-084). Owned by one attempt, which ends it with `discard`.
 */
export class Speculation {
  readonly #toolSet: ToolSet;
  readonly #context: DispatchContext;
  readonly #stages: PrepareStages;
  readonly #early = new Map<string, EarlyPreparation>();
  /** Made with the first preparation. */
  #abort: AbortController | undefined;
  #unsettled = 0;
  #discarded = false;

  constructor(options: { toolSet: ToolSet; context: DispatchContext; stages: PrepareStages }) {
    this.#toolSet = options.toolSet;
    this.#context = options.context;
    this.#stages = options.stages;
  }

  /** Starts what is to run by the time that the model answers. */
  requestSent(): void {
    for (const plugin of this.#toolSet.warmWithRun) this.#stages.plugins.warm(plugin);
  }

  toolNamed(name: string): void {
    const bound = this.#toolSet.get(name);
    if (bound === undefined) return;
    this.#stages.plugins.warm(bound.plugin);
    this.#stages.checker.warm(bound.spec);
  }

  argumentsComplete(part: ToolCallPart): void {
    if (this.#early.size >= MAX_EARLY || this.#early.has(part.id) || this.#discarded) return;
    const toolCallId = createId<ToolCallId>();
    const call = { toolCallId, part, toolSet: this.#toolSet, context: this.#context };
    const prepared = prepareCall(call, this.#stages, this.#signal());
    this.#unsettled += 1;
    const settled = () => {
      this.#unsettled -= 1;
    };
    // Whoever takes it sees the failure; nobody has to.
    prepared.then(settled, settled);
    this.#early.set(part.id, { toolCallId, prepared });
  }

  /** Hands a preparation over; the taker now owns its token. */
  take(part: ToolCallPart): EarlyPreparation | undefined {
    const early = this.#early.get(part.id);
    this.#early.delete(part.id);
    return early;
  }

  /** Stops what runs and gives back what nobody took. */
  discard(): void {
    this.#discarded = true;
    if (this.#unsettled > 0) this.#abort?.abort();
    for (const { prepared } of this.#early.values()) {
      prepared.then((call) => discardToken(call, this.#stages.plugins)).catch(() => undefined);
    }
    this.#early.clear();
  }

  #signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      // Every early preparation listens; Node would warn of a leak from the eleventh on.
      setMaxListeners(0, this.#abort.signal);
    }
    return this.#abort.signal;
  }
}
