import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { setTimeout } from "node:timers/promises";

/** Of `/proc/*\/stat`; Linux reports hundredths of a second to every program. */
const TICKS_PER_SECOND = 100;
const FORKED_NOT_EXECUTED = 0x40;

/** Watches the memory of every process that carries a mark in its environment. */
export class ProcessTree {
  readonly #mark: string;
  readonly #known = new Map<number, boolean>();
  /** Largest sum over the tree, and largest single process, in KiB. */
  peakTreeKib = 0;
  peakProcessKib = 0;

  /** Processes that are there already are left alone. */
  constructor(mark: string) {
    this.#mark = mark;
    for (const pid of allPids()) this.#known.set(pid, false);
  }

  sample(): void {
    let sum = 0;
    for (const pid of this.pids()) {
      // A child between fork and exec shares its parent's pages.
      if ((Number(statOf(String(pid))?.[6] ?? FORKED_NOT_EXECUTED) & FORKED_NOT_EXECUTED) !== 0)
        continue;
      const status = read(`/proc/${pid}/status`) ?? "";
      sum += Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0);
      const peak = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0);
      this.peakProcessKib = Math.max(this.peakProcessKib, peak);
    }
    this.peakTreeKib = Math.max(this.peakTreeKib, sum);
  }

  pids(): number[] {
    return allPids().filter((pid) => {
      let mine = this.#known.get(pid);
      if (mine === undefined) {
        const environment = read(`/proc/${pid}/environ`);
        if (environment === undefined || environment === "") return false;
        mine = environment.includes(this.#mark);
        this.#known.set(pid, mine);
      }
      return mine;
    });
  }

  /** Ends what the measured program left behind and says how much that was. */
  killLeftovers(): number {
    const left = this.pids().filter((pid) => read(`/proc/${pid}/environ`)?.includes(this.#mark));
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it has just ended
      }
    }
    return left.length;
  }
}

/** CPU seconds of all children that this process has waited for, with what they had waited for themselves. */
export function childrenCpuSeconds(): number {
  const stat = statOf("self");
  return (Number(stat?.[13]) + Number(stat?.[14])) / TICKS_PER_SECOND;
}

/** Waits until others leave the machine alone, at most `limitMs`. */
export async function waitForCalm(limitMs: number): Promise<void> {
  const start = Date.now();
  do {
    const before = busySeconds();
    const at = Date.now();
    await setTimeout(400);
    const busy = (busySeconds() - before) / ((Date.now() - at) / 1000);
    if (busy < 0.25 * cpus().length) return;
    await setTimeout(400);
  } while (Date.now() - start < limitMs);
}

function busySeconds(): number {
  const fields = (read("/proc/stat") ?? "").split("\n")[0]?.trim().split(/\s+/).slice(1) ?? [];
  const [user, nice, system, , , irq, softirq] = fields.map(Number);
  return (
    [user, nice, system, irq, softirq].reduce<number>((sum, n) => sum + (n ?? 0), 0) /
    TICKS_PER_SECOND
  );
}

/** The fields of `/proc/<pid>/stat` after the program's name. */
function statOf(pid: string): string[] | undefined {
  const stat = read(`/proc/${pid}/stat`);
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function allPids(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return undefined;
  }
}
