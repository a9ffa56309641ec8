import { type SessionId, type StoredEvent, VisibleBranch } from "@cookie-agent/sdk/protocol";
import { AppendChecks } from "./append-checks.ts";
import { foldBranch, foldLog, type LogFold } from "./fold-log.ts";
import type { LogEnd } from "./read-log.ts";

/** The projection of a session: a fold of the events that count. */
export interface LogObserver {
  /** Called in seq order, before subscribers see the event. */
  apply(event: StoredEvent): void;
  /** Forgets everything: what still counts follows anew. */
  restart(): void;
}

/** Where the events of a log can be read again: its file, or the memory of a session that has none. */
export type ReadAgain = (() => AsyncIterable<Uint8Array>) | readonly StoredEvent[];

/** What the events that count add up to: what may follow them, and what is projected (S-061). */
export class BranchFold {
  readonly #sessionId: SessionId;
  readonly #observer: LogObserver;
  #checks = new AppendChecks();
  #branch = new VisibleBranch();

  constructor(sessionId: SessionId, observer: LogObserver) {
    this.#sessionId = sessionId;
    this.#observer = observer;
  }

  /** Judges what may follow; an event that was judged is then announced, not applied. */
  get checks(): AppendChecks {
    return this.#checks;
  }

  announce(event: StoredEvent): void {
    this.#observer.apply(event);
  }

  /** Folds a log; `also` is told of what counts nothing too. */
  async read(
    read: () => AsyncIterable<Uint8Array>,
    also: Pick<LogFold, "place" | "skip">,
  ): Promise<LogEnd> {
    const { branch, end } = await foldLog(read, this.#sessionId, { ...also, ...this.#fold });
    this.#branch = branch;
    return end;
  }

  /** Folds anew without the events that a marker hides. The fold is of no use any more when this rejects. */
  async revert(throughSeq: number, markerSeq: number, log: ReadAgain): Promise<void> {
    const branch = this.#branch;
    branch.revert(throughSeq, markerSeq);
    if (typeof log === "function") {
      await foldBranch(log, this.#sessionId, { branch, endSeq: markerSeq }, this.#fold);
      return;
    }
    this.#fold.restart();
    for (const event of log) if (branch.isVisible(event.seq)) this.#fold.apply(event);
  }

  readonly #fold = {
    apply: (event: StoredEvent) => {
      this.#checks.fold(event);
      this.#observer.apply(event);
    },
    restart: () => {
      this.#checks = new AppendChecks();
      this.#observer.restart();
    },
  };
}
