import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** The private directories of plugins (E-048); all owner-only. */
export class PluginDirectories {
  readonly #root: string;
  readonly #run: string;

  constructor(root: string) {
    this.#root = root;
    this.#run = join(root, "run", String(process.pid));
  }

  /** Creates what one process of a plugin may write to; `data` survives, `scratch` is new and empty. */
  async open(plugin: string, generation: number): Promise<{ data: string; scratch: string }> {
    const data = join(this.#root, "plugins", plugin, "data");
    const scratch = join(this.#run, "scratch", `${plugin}-${generation}`);
    await rm(scratch, { recursive: true, force: true });
    await Promise.all([data, scratch].map((path) => mkdir(path, { recursive: true, mode: 0o700 })));
    return { data, scratch };
  }

  async removeScratch(scratch: string): Promise<void> {
    await rm(scratch, { recursive: true, force: true });
  }

  /** Removes everything that belonged to this kernel process. */
  async close(): Promise<void> {
    await rm(this.#run, { recursive: true, force: true });
  }
}
