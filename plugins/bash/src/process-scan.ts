import { readdirSync, readFileSync } from "node:fs";

/** Environment variable that names the call a process was started by. */
export const MARKER = "COOKIE_AGENT_CALL";

const PID = /^\d+$/;
/** So few ids are looked at one by one; listing every process of the machine costs more. */
const MAX_PROBED = 16;

/** True where other processes can be looked at through procfs. */
export const canScan: boolean = process.platform === "linux";

/** Live members of a process group, zombies left out; empty where there is no procfs. */
export function groupMembers(group: number): number[] {
  return allPids().filter((pid) => {
    const stat = statFields(pid);
    return stat !== undefined && stat.group === group && stat.state !== "Z" && stat.state !== "X";
  });
}

/**
 * Live processes whose environment carries a marker, however far they went from their parent; empty where there is
 * no procfs.
 *
 * @param newerThan Only looks at process ids above this one, while ids have not wrapped around since.
 */
export function markedProcesses(marker: string, newerThan?: number): number[] {
  const entry = Buffer.from(`${MARKER}=${marker}`);
  return candidates(newerThan).filter((pid) => {
    const environment = readProc(pid, "environ");
    if (environment === undefined || !holdsEntry(environment, entry)) return false;
    const state = statFields(pid)?.state;
    return state !== undefined && state !== "Z" && state !== "X" && !isThread(pid);
  });
}

/** Processes marked by a process of this plugin that is no more. */
export function abandonedProcesses(): number[] {
  return allPids().filter((pid) => {
    const owner = ownerIn(readProc(pid, "environ")?.toString("latin1") ?? "");
    return owner !== undefined && !isAlive(owner);
  });
}

/** The process id that a marker begins with. */
function ownerIn(environment: string): number | undefined {
  const marked = environment.split("\0").find((entry) => entry.startsWith(`${MARKER}=`));
  const owner = Number.parseInt(marked?.slice(MARKER.length + 1) ?? "", 10);
  return owner > 0 ? owner : undefined;
}

/** Also true for a process that we may not signal. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function candidates(newerThan: number | undefined): number[] {
  const newest = newerThan === undefined ? 0 : lastPid();
  if (newerThan === undefined || newest < newerThan) return others(allPids());
  const count = newest - newerThan;
  if (count <= MAX_PROBED) {
    return others(Array.from({ length: count }, (_, index) => newerThan + 1 + index));
  }
  return others(allPids()).filter((pid) => pid > newerThan);
}

function others(pids: readonly number[]): number[] {
  return pids.filter((pid) => pid !== process.pid);
}

/** Threads have ids and folders as processes do; only the list of processes leaves them out. */
function isThread(pid: number): boolean {
  const owner = /^Tgid:\s*(\d+)$/m.exec(readProc(pid, "status")?.toString("latin1") ?? "")?.[1];
  return owner !== undefined && Number(owner) !== pid;
}

/** The id given to the newest process, which is below older ones once ids have wrapped around. */
function lastPid(): number {
  try {
    return Number(readFileSync("/proc/loadavg", "latin1").trim().split(" ").at(-1));
  } catch {
    return 0;
  }
}

/** The entry starts the environment or follows a NUL; a marker with a longer name after it counts too. */
function holdsEntry(environment: Buffer, entry: Buffer): boolean {
  for (let at = environment.indexOf(entry); at !== -1; at = environment.indexOf(entry, at + 1)) {
    if (at === 0 || environment[at - 1] === 0) return true;
  }
  return false;
}

function allPids(): number[] {
  if (!canScan) return [];
  try {
    return readdirSync("/proc")
      .filter((name) => PID.test(name))
      .map(Number);
  } catch {
    return [];
  }
}

function statFields(pid: number): { state: string; group: number } | undefined {
  const text = readProc(pid, "stat")?.toString("latin1");
  // The command name may hold spaces and brackets; the fields begin after its last bracket.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, , group] = fields ?? [];
  return state === undefined || group === undefined ? undefined : { state, group: Number(group) };
}

function readProc(pid: number, name: string): Buffer | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`);
  } catch {
    // The process is gone or belongs to another user; neither is ours to end.
    return undefined;
  }
}
