import type { PluginDiagnosticKind, SessionId } from "@cookie-agent/sdk/protocol";
import { safeText } from "../support/safe-text.ts";

/** Of a message's characters this many tell one counter from another (E-152). */
const MESSAGE_CHARACTERS = 200;
/** What a counter that stands for many messages says. */
const OVERFLOW = "(overflow)";

/** What happened how often. */
export interface DiagnosticCount {
  readonly plugin: string;
  readonly kind: PluginDiagnosticKind;
  readonly message: string;
  readonly count: number;
}

type Counter = DiagnosticCount & { readonly sessionId: SessionId; count: number };

/**
 * One batch of diagnostics: a counter per session, plugin, kind and message. At most `maxKeys` of them keep their
 * message; what comes on top is counted per session, plugin and kind, exactly (E-152).
 */
export class DiagnosticCounters {
  readonly #maxKeys: number;
  readonly #details = new Map<string, Counter>();
  readonly #overflow = new Map<string, Counter>();

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get empty(): boolean {
    return this.#details.size === 0 && this.#overflow.size === 0;
  }

  add(sessionId: SessionId, added: DiagnosticCount): void {
    const message = normalized(added.message);
    const { plugin, kind, count } = added;
    const key = JSON.stringify([sessionId, plugin, kind, message]);
    const known = this.#details.get(key);
    if (known !== undefined) known.count += count;
    else if (message !== OVERFLOW && this.#details.size < this.#maxKeys) {
      this.#details.set(key, { sessionId, plugin, kind, message, count });
    } else {
      this.#addOverflow(sessionId, { plugin, kind, message: OVERFLOW, count });
    }
  }

  /** Empties the batch: what was counted in each session, details before overflows. */
  take(): Map<SessionId, DiagnosticCount[]> {
    const bySession = new Map<SessionId, DiagnosticCount[]>();
    for (const { sessionId, ...count } of [...this.#details.values(), ...this.#overflow.values()]) {
      const counts = bySession.get(sessionId) ?? [];
      counts.push(count);
      bySession.set(sessionId, counts);
    }
    this.#details.clear();
    this.#overflow.clear();
    return bySession;
  }

  #addOverflow(sessionId: SessionId, added: DiagnosticCount): void {
    const key = JSON.stringify([sessionId, added.plugin, added.kind]);
    const known = this.#overflow.get(key);
    if (known !== undefined) known.count += added.count;
    else this.#overflow.set(key, { sessionId, ...added });
  }
}

function normalized(message: string): string {
  const shown = safeText(message, MESSAGE_CHARACTERS * 4);
  const characters = [...shown];
  if (characters.length <= MESSAGE_CHARACTERS) return shown;
  return characters.slice(0, MESSAGE_CHARACTERS).join("").trim();
}
