import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "../support/has-code.ts";
import { makeDirectory } from "../support/make-directory.ts";

/** The private directories of plugins (E-048); all owner-only. */
export class PluginDirectories {
  readonly #root: string;
  readonly #run: string;
  #sweeping: Promise<void> | undefined;

  constructor(root: string) {
    this.#root = root;
    this.#run = join(root, "run", String(process.pid));
  }

  /** Creates what one process of a plugin may write to; `data` survives, `scratch` is new and empty. */
  async open(plugin: string, generation: number): Promise<{ data: string; scratch: string }> {
    this.#sweeping ??= this.#sweep().catch(() => undefined);
    const data = join(this.#root, "plugins", plugin, "data");
    const scratch = join(this.#run, "scratch", `${plugin}-${generation}`);
    await rm(scratch, { recursive: true, force: true });
    await Promise.all([data, scratch].map(makeDirectory));
    return { data, scratch };
  }

  /** What cannot be removed goes with everything else, at the end of this process or by the next one. */
  async removeScratch(scratch: string): Promise<void> {
    await rm(scratch, { recursive: true, force: true }).catch(() => undefined);
  }

  /** Removes everything that belonged to this kernel process. */
  async close(): Promise<void> {
    await this.#sweeping;
    await rm(this.#run, { recursive: true, force: true });
  }

  /** Removes what kernel processes left that did not get to close. */
  async #sweep(): Promise<void> {
    const run = join(this.#root, "run");
    for (const name of await readdir(run)) {
      if (/^[1-9]\d*$/.test(name) && !isRunning(Number(name))) {
        await rm(join(run, name), { recursive: true, force: true });
      }
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !hasCode(error, "ESRCH");
  }
}
