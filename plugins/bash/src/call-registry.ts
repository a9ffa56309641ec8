import { randomBytes } from "node:crypto";
import { KILL_GRACE_MS, type ProcessGroup, send, waitFor } from "./process-group.ts";
import { abandonedProcesses, markedProcesses } from "./process-scan.ts";

/** What commands of this plugin process are running and what they left running, so that nothing outlives the kernel. */
export class CallRegistry {
  /** Its process id tells a later process of this plugin whether anyone still answers for a command. */
  readonly #instance = `${process.pid}.${randomBytes(8).toString("hex")}`;
  readonly #live = new Set<ProcessGroup>();
  #escaped = false;

  /** The marker value of a call; all of one plugin process begin alike. */
  markerOf(invocationId: string): string {
    return `${this.#instance}/${invocationId}`;
  }

  add(group: ProcessGroup): void {
    this.#live.add(group);
  }

  delete(group: ProcessGroup): void {
    this.#live.delete(group);
  }

  /** Remembers that some call's process left its group and lives on. */
  noteEscaped(escaped: boolean): void {
    this.#escaped ||= escaped;
  }

  /** Ends everything that calls of this process started, also what earlier calls left alone. */
  async close(): Promise<void> {
    this.killNow();
    if (!this.#escaped) return;
    this.#signalEscaped("SIGTERM");
    await waitFor(() => this.#marked().length === 0, KILL_GRACE_MS);
    this.#signalEscaped("SIGKILL");
  }

  /** Ends what a process of this plugin left behind that was killed before it could do so itself. */
  endAbandoned(): void {
    for (const pid of abandonedProcesses()) send(pid, "SIGKILL");
  }

  /** The same for a process that exits at once: running groups only. */
  killNow(): void {
    for (const group of this.#live) group.kill();
  }

  #marked(): number[] {
    return markedProcesses(`${this.#instance}/`);
  }

  #signalEscaped(signal: NodeJS.Signals): void {
    for (const pid of this.#marked()) send(pid, signal);
  }
}
