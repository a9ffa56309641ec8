import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { TempProject } from "../../support/temp-project.ts";

const POLL_MS = 5;
const PATIENCE_MS = 45_000;

/** Resolves when the condition holds; rejects when it never does. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`never came true: ${what}`);
    await delay(POLL_MS);
  }
}

/** Live processes that work for a project: its home stands in their environment, or they work below its directory. */
export function processesOf({ home, cwd }: Pick<TempProject, "home" | "cwd">): number[] {
  return allProcesses().filter((pid) => {
    if (isZombie(pid)) return false;
    return (
      (read(pid, "environ") ?? "").includes(home) || (workingDirectory(pid) ?? "").startsWith(cwd)
    );
  });
}

/** Live children of a process. */
export function childrenOf(parent: number): number[] {
  return allProcesses().filter((pid) => stat(pid)?.parent === parent && !isZombie(pid));
}

/** Resident memory of a process in bytes; 0 once it is gone. */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(read(pid, "status") ?? "")?.[1];
  return kib === undefined ? 0 : Number(kib) * 1024;
}

function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

function isZombie(pid: number): boolean {
  const state = stat(pid)?.state;
  return state === undefined || state === "Z" || state === "X";
}

function stat(pid: number): { state: string; parent: number } | undefined {
  const text = read(pid, "stat");
  const [state, parent] = text?.slice(text.lastIndexOf(")") + 2).split(" ") ?? [];
  return state === undefined || parent === undefined
    ? undefined
    : { state, parent: Number(parent) };
}

function read(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return undefined;
  }
}

function workingDirectory(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}
