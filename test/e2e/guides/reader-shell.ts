import { spawn } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import type { TempProject } from "../../support/temp-project.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const TOOLS = join(REPOSITORY, "node_modules/.bin");

export interface ShellResult {
  readonly exitCode: number | null;
  /** stdout and stderr, as a terminal shows them. */
  readonly printed: string;
}

/** Types a document's lines into a shell, as a reader does who has `cookie` on the path. */
export function readerShell(project: TempProject, env: Readonly<Record<string, string>> = {}) {
  return (script: string, cwd = project.cwd): Promise<ShellResult> =>
    new Promise((resolve, reject) => {
      const shell = spawn("/bin/sh", ["-c", `exec 2>&1\n${script}`], {
        cwd,
        env: {
          PATH: [TOOLS, dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter),
          HOME: project.home,
          ...env,
        },
        stdio: ["ignore", "pipe", "inherit"],
      });
      let printed = "";
      shell.stdout.setEncoding("utf8").on("data", (text: string) => {
        printed += text;
      });
      shell.once("error", reject);
      shell.once("close", (exitCode) => resolve({ exitCode, printed }));
    });
}

/** What `npm i` would put into `directory`, taken from this workspace. */
export async function linkPackages(directory: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const link = join(directory, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(REPOSITORY, "node_modules", name), link);
  }
  await symlink(TOOLS, join(directory, "node_modules/.bin"));
}
