import { accessSync, constants, existsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { type Check, failed, ok, warning } from "./check.ts";

const OLDEST_NODE = [20, 19] as const;

/** Node is new enough for every package of the product. */
export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_NODE;
  const enough = major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
  return enough
    ? ok("node", version)
    : failed("node", version, `install Node ${oldestMajor}.${oldestMinor} or newer`);
}

/** The state directory, or the place where it will be made, can be written. */
export function checkStateDirectory(root: string): Check {
  let place = root;
  while (!existsSync(place) && dirname(place) !== place) place = dirname(place);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
    if (!statSync(place).isDirectory()) throw new Error("not a directory");
  } catch {
    return failed("state directory", `${root} cannot be written`, `make ${place} writable for you`);
  }
  return ok("state directory", existsSync(root) ? root : `${root} (made at the first session)`);
}

/** Sessions are owned through file locks; a file system without them cannot hold state. */
export async function checkLocks(root: string): Promise<Check> {
  const { probeFileLock } = await import("@cookie-agent/kernel");
  const problem = await probeFileLock(existsSync(root) ? root : tmpdir());
  return problem === null
    ? ok("file locks", "work")
    : failed(
        "file locks",
        problem,
        "keep the home directory, or --data-dir, on a local file system; if the native module is missing, reinstall",
      );
}

/** A bash for the bash tool: on PATH, or in the places where it usually lies. */
export function checkShell(path: string | undefined): Check {
  const folders = [...(path ?? "").split(delimiter), "/usr/local/bin", "/usr/bin", "/bin"];
  const found = folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, "bash"))
    .find(isExecutable);
  return found === undefined
    ? warning(
        "shell",
        "no bash found",
        'install bash, or name one with [plugins."builtin.bash".config] shell',
      )
    : ok("shell", found);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
