import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/** The living processes below `pid` or in its group, itself not counted; null where they cannot be seen. */
export function processesOf(pid: number): number[] | null {
  const rows = process.platform === "linux" ? readProc() : readPs();
  if (rows === null) return null;
  const found = new Set<number>([pid]);
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const row of rows) {
      if (found.has(row.parent) || row.group === pid) found.add(row.pid);
    }
  }
  found.delete(pid);
  return [...found];
}

/** True while a process exists and is no zombie. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const rows = process.platform === "linux" ? readProc() : null;
  return rows === null || rows.some((row) => row.pid === pid);
}

/** Ends a process, its group, and what went out of the group but still hangs below it. */
export function killTree(pid: number): void {
  const below = processesOf(pid) ?? [];
  for (const target of [-pid, pid, ...below]) {
    try {
      process.kill(target, "SIGKILL");
    } catch {
      // gone already
    }
  }
}

function readProc(): ProcessRow[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      let stat: string;
      try {
        stat = readFileSync(`/proc/${name}/stat`, "latin1");
      } catch {
        return [];
      }
      // The program's name stands in parentheses and may hold anything.
      const [state = "", parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (/^[ZX]/.test(state)) return [];
      return [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
    });
}

function readPs(): ProcessRow[] | null {
  const { stdout, status } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,pgid=,stat="], {
    encoding: "utf8",
  });
  if (status !== 0) return null;
  return stdout.split("\n").flatMap((line) => {
    const [pid, parent, group, state = "Z"] = line.trim().split(/\s+/);
    if (pid === undefined || pid === "" || state.startsWith("Z")) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group) }];
  });
}
