import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "vitest";
import { type DriverOptions, PluginDriver } from "../../../support/plugin-driver.ts";

const ENTRY = fileURLToPath(new URL("../../../../plugins/fs/dist/fs.js", import.meta.url));

export interface FsFixture {
  /** A fresh folder that holds `workspace` and whatever a test puts beside it; it is also the home directory. */
  readonly root: string;
  readonly workspace: string;
  readonly plugin: PluginDriver;
  /** Puts a file into the workspace and returns its absolute path. */
  put(name: string, content: string | Buffer): Promise<string>;
}

/** One plugin process and one workspace for all tests of a file. */
export function useFs(options: Omit<DriverOptions, "workspace"> = {}): FsFixture {
  let root = "";
  const workspace = () => join(root, "work");
  let plugin: PluginDriver | undefined;
  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), "cookie-fs-")));
    await mkdir(workspace());
    plugin = await PluginDriver.start(ENTRY, {
      workspace: workspace(),
      ...options,
      env: { ...process.env, HOME: root },
    });
  });
  afterAll(async () => {
    await plugin?.close();
    await rm(root, { recursive: true, force: true });
  });
  return {
    get root() {
      return root;
    },
    get workspace() {
      return workspace();
    },
    get plugin() {
      if (plugin === undefined) throw new Error("the plugin has not started");
      return plugin;
    },
    put: async (name, content) => {
      const path = join(workspace(), name);
      await writeFile(path, content);
      return path;
    },
  };
}
