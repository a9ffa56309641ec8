import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";

const REPOSITORY = join(import.meta.dirname, "../../..");
const run = promisify(execFile);
let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "cookie-checkout-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

test("npx cookie works in the checkout", async () => {
  const { stdout } = await run("npx", ["cookie", "--version"], { cwd: REPOSITORY });
  const { version } = JSON.parse(await readFile(join(REPOSITORY, "cli/package.json"), "utf8")) as {
    version: string;
  };
  expect(stdout).toBe(`${version}\n`);
});

test("the launcher of a checkout that is not built says what to do", async () => {
  await mkdir(join(root, "bin"));
  const launcher = join(root, "bin/cookie.js");
  await copyFile(join(REPOSITORY, "cli/bin/cookie.js"), launcher);
  await copyFile(join(REPOSITORY, "cli/package.json"), join(root, "package.json"));
  const failure = await run(process.execPath, [launcher, "--version"]).catch(
    (error: unknown) => error,
  );
  expect(failure).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^error: .*npm run build/),
  });
});

test("[E-038] the manifest of every shipped plugin is what its build writes", async () => {
  for (const name of await readdir(join(REPOSITORY, "plugins"))) {
    const folder = join(REPOSITORY, "plugins", name);
    const copy = join(root, name);
    await mkdir(join(copy, "dist"), { recursive: true });
    await copyFile(join(folder, "package.json"), join(copy, "package.json"));
    await copyFile(join(folder, `dist/${name}.js`), join(copy, `dist/${name}.js`));
    await run(process.execPath, [join(copy, `dist/${name}.js`), "manifest"]);
    const written = await readFile(join(copy, "cookie-plugin.json"), "utf8");
    expect(written, name).toBe(await readFile(join(folder, "cookie-plugin.json"), "utf8"));
  }
});
