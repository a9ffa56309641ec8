import { spawn, spawnSync } from "node:child_process";
import { LAUNCHER } from "./run-cookie.ts";
import type { TempProject } from "./temp-project.ts";

/** True where util-linux's `script` can make a pseudo terminal. */
export const CAN_OPEN_TERMINAL = spawnSync("script", ["--version"], {
  encoding: "utf8",
}).stdout?.includes("util-linux");

export interface TerminalOptions {
  /** Appended to the command line, such as `>out.txt`. */
  readonly redirect?: string;
  /** Told all that was shown so far, whenever more is shown. */
  readonly onScreen?: (screen: string) => void;
  /** Typed one after the other, each once its text was shown; what is waited for can be more than a text. */
  readonly type?: readonly {
    readonly after: string | ((screen: string) => boolean);
    readonly text: string;
  }[];
  /** Closes the terminal under the command once this is shown. */
  readonly closeAfter?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface TerminalResult {
  readonly exitCode: number | null;
  /** Everything the terminal was sent. */
  readonly screen: string;
}

/** Runs the built command in a pseudo terminal of its own. */
export function runInTerminal(
  project: Pick<TempProject, "home" | "cwd">,
  args: readonly string[],
  options: TerminalOptions = {},
): Promise<TerminalResult> {
  const words = [process.execPath, LAUNCHER, ...args].map(quote);
  const command = [...words, options.redirect ?? ""].join(" ").trim();
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd: project.cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: project.home,
      TERM: "xterm",
      SHELL: "/bin/sh",
      ...options.env,
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  let screen = "";
  const typing = [...(options.type ?? [])];
  child.stdin.on("error", () => undefined);
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
    options.onScreen?.(screen);
    if (options.closeAfter !== undefined && screen.includes(options.closeAfter)) {
      child.kill("SIGKILL");
    }
    const next = typing[0];
    if (next === undefined) return;
    const { after } = next;
    if (!(typeof after === "string" ? screen.includes(after) : after(screen))) return;
    typing.shift();
    child.stdin.write(next.text);
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => {
      child.stdin.destroy();
      resolve({ exitCode, screen });
    });
  });
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
