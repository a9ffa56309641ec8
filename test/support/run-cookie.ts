import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TempProject } from "./temp-project.ts";

export const LAUNCHER = fileURLToPath(new URL("../../cli/bin/cookie.js", import.meta.url));

export interface CookieResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CookieProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Everything printed so far. */
  readonly printed: { stdout: string; stderr: string };
  readonly result: Promise<CookieResult>;
}

export interface CookieOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Written to stdin, which is then closed; null leaves it open. */
  readonly stdin?: string | null;
  readonly launcher?: string;
}

/** Starts the built command in a project, with nothing of this process's environment but PATH. */
export function startCookie(
  project: Pick<TempProject, "home" | "cwd">,
  args: readonly string[],
  options: CookieOptions = {},
): CookieProcess {
  const child = spawn(process.execPath, [options.launcher ?? LAUNCHER, ...args], {
    cwd: project.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOME: project.home, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const printed = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed.stderr += text;
  });
  child.stdin.on("error", () => undefined);
  if (options.stdin !== null) child.stdin.end(options.stdin ?? "");
  const result = new Promise<CookieResult>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal, ...printed }));
  });
  return { child, printed, result };
}

/** Runs the built command to its end. */
export function runCookie(
  project: Pick<TempProject, "home" | "cwd">,
  args: readonly string[],
  options: CookieOptions = {},
): Promise<CookieResult> {
  return startCookie(project, args, options).result;
}

/** Runs a script on the offline model with every approval given. */
export function runScript(
  project: Pick<TempProject, "home" | "cwd">,
  script: string,
  args: readonly string[] = [],
  options: CookieOptions = {},
): Promise<CookieResult> {
  return runCookie(
    project,
    ["run", "-m", "offline/script", "--permission-mode", "yolo", ...args, script],
    options,
  );
}

/** The JSON lines of `-o json`. */
export function jsonLines(stdout: string): Record<string, unknown>[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
