import type { PluginDiagnosticKind, SessionId } from "@cookie-agent/sdk/protocol";
import { withDeadline } from "../support/deadline.ts";
import { type DiagnosticCount, DiagnosticCounters } from "./diagnostic-counters.ts";

/** Bounds of E-152. */
export interface DiagnosticLimits {
  readonly flushMs: number;
  /** How long one session's append may hold up the flush. */
  readonly appendMs: number;
  readonly drainMs: number;
  /** Counters of one batch that keep their message. */
  readonly keys: number;
}

const DIAGNOSTIC_LIMITS: DiagnosticLimits = {
  flushMs: 100,
  appendMs: 250,
  drainMs: 5_000,
  keys: 256,
};

export interface DiagnosticsOptions {
  /** Records one `plugin_diagnostic` for each in a session; rejects while it cannot. */
  append(sessionId: SessionId, counts: readonly DiagnosticCount[]): Promise<unknown>;
  /** Told at the end of a drain of each plugin whose diagnostics were not all recorded. */
  onIncomplete?(plugin: string): void;
  readonly limits?: Partial<DiagnosticLimits>;
}

/**
 * What went wrong with plugins, as coalesced counters in the sessions that it concerned (E-152). Whoever notes
 * something only counts; a flush records it off everybody's path. While nothing is noted no timer runs.
 *
 * What a session does not take is kept and tried again with the next flush; a session whose append takes too long is
 * left out until that append has ended, so nothing is ever counted twice.
 */
export class Diagnostics {
  readonly #options: DiagnosticsOptions;
  readonly #limits: DiagnosticLimits;
  readonly #counters: DiagnosticCounters;
  /** Sessions whose last append has not ended, and what it records. */
  readonly #appending = new Map<SessionId, Append>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: DiagnosticsOptions) {
    this.#options = options;
    this.#limits = { ...DIAGNOSTIC_LIMITS, ...options.limits };
    this.#counters = new DiagnosticCounters(this.#limits.keys);
  }

  /** Counts once; costs no append and never fails. `message` is shown to people: one line, no secrets. */
  note(sessionId: SessionId, plugin: string, kind: PluginDiagnosticKind, message: string): void {
    if (this.#closed) return;
    this.#counters.add(sessionId, { plugin, kind, message, count: 1 });
    this.#arm();
  }

  /** Records what is counted, within the drain's bound; what is noted later is dropped. Idempotent. */
  async drain(): Promise<void> {
    if (this.#closed) return;
    await withDeadline(this.#recordAll(), this.#limits.drainMs, "drain").catch(() => undefined);
    this.#closed = true;
    clearTimeout(this.#timer);
    const left = [
      ...[...this.#appending.values()].flatMap(({ counts }) => counts),
      ...[...this.#counters.take().values()].flat(),
    ];
    for (const plugin of new Set(left.map(({ plugin }) => plugin))) {
      this.#options.onIncomplete?.(plugin);
    }
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#flush();
    }, this.#limits.flushMs).unref();
  }

  /** Once for every session that can be written at once, and again for what waited for an append under way. */
  async #recordAll(): Promise<void> {
    await this.#flush();
    await this.#appendsEnd();
    await this.#flush();
    await this.#appendsEnd();
  }

  async #appendsEnd(): Promise<void> {
    await Promise.all([...this.#appending.values()].map(({ ended }) => ended));
  }

  /** After the flush that is under way, which is bounded. */
  #flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#flushBatch());
    return this.#flushing;
  }

  async #flushBatch(): Promise<void> {
    const batch = this.#counters.take();
    await Promise.all([...batch].map(([sessionId, counts]) => this.#record(sessionId, counts)));
  }

  async #record(sessionId: SessionId, counts: readonly DiagnosticCount[]): Promise<void> {
    const before = this.#appending.get(sessionId);
    if (before !== undefined) {
      this.#keep(sessionId, counts);
      void before.ended.then(() => this.#arm());
      return;
    }
    const ended = this.#append(sessionId, counts);
    this.#appending.set(sessionId, { counts, ended });
    await withDeadline(ended, this.#limits.appendMs, "append").catch(() => undefined);
  }

  async #append(sessionId: SessionId, counts: readonly DiagnosticCount[]): Promise<void> {
    try {
      await this.#options.append(sessionId, counts);
    } catch {
      this.#keep(sessionId, counts);
    }
    this.#appending.delete(sessionId);
  }

  #keep(sessionId: SessionId, counts: readonly DiagnosticCount[]): void {
    for (const count of counts) this.#counters.add(sessionId, count);
  }
}

interface Append {
  readonly counts: readonly DiagnosticCount[];
  readonly ended: Promise<void>;
}
