import { onTestFinished } from "vitest";
import {
  type Answer,
  type ModelServer,
  providerToml,
  startModelServer,
  type Wire,
} from "../../support/model-server.ts";
import {
  type CookieOptions,
  type CookieProcess,
  type CookieResult,
  startCookie,
} from "../../support/run-cookie.ts";
import { createTempProject, type TempProject } from "../../support/temp-project.ts";
import { processesOf, waitUntil } from "./processes.ts";

const started = new WeakMap<TempProject, CookieProcess[]>();

/** A project that is removed when the test ends, with every process that still works for it. */
export async function faultProject(): Promise<TempProject> {
  const project = await createTempProject();
  started.set(project, []);
  onTestFinished(async () => {
    for (const { child } of started.get(project) ?? []) child.kill("SIGKILL");
    for (const pid of processesOf(project)) kill(pid);
    await waitUntil(() => processesOf(project).length === 0, "every process has ended");
    await project.remove();
  });
  return project;
}

/** A provider that answers as scripted, configured in the project as `custom.test/scripted`. */
export async function withModel(
  project: TempProject,
  wire: Wire,
  ...answers: Answer[]
): Promise<ModelServer> {
  const server = await startModelServer(...answers);
  onTestFinished(() => server.close());
  await project.writeState("config.toml", providerToml(server, { wire }));
  return server;
}

/** Starts `cookie run` with every approval given; `model` selects the offline model or the scripted provider. */
export function startRun(
  project: TempProject,
  prompt: string,
  args: readonly string[] = [],
  options: CookieOptions = {},
): CookieProcess {
  return start(project, ["run", "--permission-mode", "yolo", ...args, prompt], options);
}

export function start(
  project: TempProject,
  args: readonly string[],
  options: CookieOptions = {},
): CookieProcess {
  const running = startCookie(project, args, options);
  started.get(project)?.push(running);
  return running;
}

/** A run of the offline model. */
export function startOffline(
  project: TempProject,
  script: readonly string[],
  args: readonly string[] = [],
): CookieProcess {
  return startRun(project, script.join("\n"), ["-m", "offline/script", ...args]);
}

/** Ends the kernel as a crash would and waits until it is gone. */
export async function killHard({ child, result }: CookieProcess): Promise<CookieResult> {
  child.kill("SIGKILL");
  return result;
}

/** A line of an offline script that runs a command. */
export function bashLine(command: string, more: object = {}): string {
  return `call bash ${JSON.stringify({ command, ...more })}`;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has just ended by itself
  }
}
