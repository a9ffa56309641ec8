import { createHash } from "node:crypto";
import { accessSync, constants, readFileSync, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { ToolError } from "@cookie-agent/sdk/plugin";

/** The shell that runs commands, as it was when last looked at. */
export interface Shell {
  /** Real path of the executable. */
  readonly path: string;
  /** Device, inode, size and times; while they stay, so does the digest. */
  readonly identity: string;
  readonly sha256: string;
}

const FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin";
const SETTING = '[plugins."builtin.bash".config] shell';

/**
 * Finds bash: the configured path, else the first `bash` on `PATH`; `SHELL` has no say (T-070).
 * Without one it is `execution_failed` naming the setting.
 */
function findShell(configured: string | undefined, searchPath: string | undefined): Shell {
  if (configured !== undefined) {
    if (!isAbsolute(configured)) {
      throw new ToolError(
        "execution_failed",
        `${SETTING} is ${JSON.stringify(configured)}; it must be an absolute path`,
      );
    }
    const shell = inspectShell(configured);
    if (shell !== undefined) return shell;
    throw new ToolError(
      "execution_failed",
      `${SETTING} names ${configured}, which is not an executable file`,
    );
  }
  const folders = (searchPath === undefined || searchPath === "" ? FALLBACK_PATH : searchPath)
    .split(delimiter)
    .filter(isAbsolute);
  for (const folder of folders) {
    const shell = inspectShell(join(folder, "bash"));
    if (shell !== undefined) return shell;
  }
  throw new ToolError(
    "execution_failed",
    `no bash was found on PATH; install it or name one with ${SETTING}`,
  );
}

/** Remembers the shell of this process and notices when it changes between two calls. */
export class ShellRecord {
  #shell: Shell | undefined;

  /**
   * The shell to start now. A file that changed since the last call fails that one call with
   * `operation_changed`; the next call takes it as it is.
   */
  check(configured: string | undefined, searchPath: string | undefined): Shell {
    const known = this.#shell;
    if (known !== undefined && identityOf(known.path) === known.identity) return known;
    const found = findShell(configured, searchPath);
    this.#shell = found;
    if (known !== undefined && (known.path !== found.path || known.sha256 !== found.sha256)) {
      throw new ToolError(
        "operation_changed",
        `the shell changed since the last call: it is ${found.path} now. Nothing was run; repeat the call`,
      );
    }
    return found;
  }
}

function inspectShell(candidate: string): Shell | undefined {
  try {
    const path = realpathSync.native(candidate);
    accessSync(path, constants.X_OK);
    const identity = identityOf(path);
    if (identity === undefined) return undefined;
    const sha256 = createHash("sha256").update(readFileSync(path)).digest("hex");
    return { path, identity, sha256 };
  } catch {
    return undefined;
  }
}

function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return undefined;
  return [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(":");
}
