import { setTimeout as delay } from "node:timers/promises";
import { canScan, groupMembers, markedProcesses } from "./process-scan.ts";

/** How long processes have between SIGTERM and SIGKILL. */
export const KILL_GRACE_MS = 500;
/** How long a child started last may take to leave the group before it counts as a member. */
const LEAVE_MS = 150;
const POLL_MS = 15;
/** Processes that keep starting new ones are chased this often. */
const MAX_ROUNDS = 20;

/** The processes of one call: the group that its shell leads, and whatever left it but carries the call's marker. */
export class ProcessGroup {
  readonly #leader: number;
  readonly #marker: string;
  readonly #startedAt = performance.now();

  constructor(leader: number, marker: string) {
    this.#leader = leader;
    this.#marker = marker;
  }

  /** Ends what is left of the group after its shell has exited (T-072); yields how many processes that were. */
  async endMembers(): Promise<number> {
    const empty = () => this.#members() === 0;
    await waitFor(empty, LEAVE_MS);
    const members = this.#members();
    if (members === 0) return 0;
    this.#signalGroup("SIGTERM");
    await waitFor(empty, KILL_GRACE_MS);
    if (!empty()) {
      this.#signalGroup("SIGKILL");
      await waitFor(empty, LEAVE_MS);
    }
    return members;
  }

  /** Ends the group and every marked process outside it (T-071). */
  async endAll(): Promise<void> {
    this.#signalAll("SIGTERM");
    const empty = () => this.#members() === 0 && markedProcesses(this.#marker).length === 0;
    await waitFor(empty, KILL_GRACE_MS);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      if (this.#signalAll("SIGKILL") === 0) return;
      await delay(POLL_MS);
    }
  }

  /** Kills everything at once, without waiting; for a process that is about to exit. */
  kill(): void {
    this.#signalAll("SIGKILL");
  }

  /** Marked processes that live outside the group. */
  escaped(): number[] {
    // A process started by the call has a higher id than its shell unless ids wrapped, which takes a while.
    const recent = performance.now() - this.#startedAt < 10_000;
    return markedProcesses(this.#marker, recent ? this.#leader : undefined);
  }

  #members(): number {
    if (!this.#signalGroup(0)) return 0;
    return canScan ? groupMembers(this.#leader).length : 1;
  }

  #signalAll(signal: NodeJS.Signals): number {
    const members = this.#members();
    if (members > 0) this.#signalGroup(signal);
    const marked = markedProcesses(this.#marker);
    for (const pid of marked) send(pid, signal);
    return members + marked.length;
  }

  #signalGroup(signal: NodeJS.Signals | 0): boolean {
    return send(-this.#leader, signal);
  }
}

/** Resolves when the condition holds, at the latest after `limitMs`. */
export async function waitFor(condition: () => boolean, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!condition() && performance.now() < deadline) await delay(POLL_MS);
}

/** False when there is no such process, or none that we may signal. */
export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
