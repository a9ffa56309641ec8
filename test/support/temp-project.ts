import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A home and a working directory of their own, removed after the test. */
export interface TempProject {
  readonly home: string;
  readonly cwd: string;
  readonly stateDir: string;
  /** Writes a file below the working directory. */
  write(path: string, content: string | Uint8Array): Promise<string>;
  /** Writes a file below `~/.cookie-agent`. */
  writeState(path: string, content: string): Promise<string>;
  remove(): Promise<void>;
}

export async function createTempProject(): Promise<TempProject> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "cookie-test-")));
  const home = join(root, "home");
  const cwd = join(root, "project");
  const stateDir = join(home, ".cookie-agent");
  await mkdir(home);
  await mkdir(cwd);
  const put = async (file: string, content: string | Uint8Array): Promise<string> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    return file;
  };
  return {
    home,
    cwd,
    stateDir,
    write: (path, content) => put(join(cwd, path), content),
    writeState: (path, content) => put(join(stateDir, path), content),
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
