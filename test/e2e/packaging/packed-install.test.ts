import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCookie } from "../../support/run-cookie.ts";
import { codeBlocks } from "../guides/code-blocks.ts";

const REPOSITORY = join(import.meta.dirname, "../../..");
const TOOLS = join(REPOSITORY, "node_modules/.bin");
const MAX_INSTALL_BYTES = 150_000_000;
const run = promisify(execFile);

interface Packed {
  readonly name: string;
  readonly version: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

let root: string;
/** A project that installed the packed packages and nothing else. */
let app: string;
let packed: Packed[];
let environment: { home: string; cwd: string };

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "cookie-packed-")));
  app = join(root, "app");
  environment = { home: join(root, "home"), cwd: join(app, "work") };
  for (const directory of [environment.home, environment.cwd]) {
    await mkdir(directory, { recursive: true });
  }
  await writeFile(join(app, "package.json"), '{ "private": true, "type": "module" }\n');
  const folders = await readdir(join(REPOSITORY, "plugins"));
  const workspaces = ["sdk", "kernel", ...folders.map((name) => `plugins/${name}`), "cli"];
  const flags = ["--json", "--ignore-scripts", "--pack-destination", root];
  const { stdout } = await run(
    "npm",
    ["pack", ...flags, ...workspaces.flatMap((name) => ["--workspace", name])],
    { cwd: REPOSITORY, maxBuffer: 16 * 1024 * 1024 },
  );
  packed = JSON.parse(stdout) as Packed[];
  await run(
    "npm",
    ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", ...tarballs()],
    { cwd: app },
  );
}, 600_000);

afterAll(() => rm(root, { recursive: true, force: true }));

test("a package holds what was built and nothing else", () => {
  const allowed =
    /^(?:package\.json|cookie-plugin\.json|README\.md|LICENSE|(?:bin|dist)\/(?:[\w-]+\/)*[\w-]+(?:\.d\.ts|\.js))$/;
  for (const { name, files } of packed) {
    const paths = files.map(({ path }) => path);
    expect(paths.filter((path) => !allowed.test(path))).toEqual([]);
    expect(paths.some((path) => path.startsWith("dist/"))).toBe(true);
    if (name.includes("plugin")) expect(paths).toContain("cookie-plugin.json");
  }
});

test("publint finds nothing in what would be published", async () => {
  const reports = await Promise.all(
    tarballs().map((file) => run(join(TOOLS, "publint"), ["run", "--strict", file])),
  );
  for (const { stdout } of reports) expect(stdout).toContain("All good!");
});

test("our packages ask for exactly each other's version", async () => {
  const versions = Object.fromEntries(packed.map(({ name, version }) => [name, version]));
  for (const { name } of packed) {
    const { dependencies = {} } = JSON.parse(
      await readFile(join(app, "node_modules", name, "package.json"), "utf8"),
    ) as { dependencies?: Record<string, string> };
    for (const [dependency, range] of Object.entries(dependencies)) {
      expect(range, `${name} on ${dependency}`).toBe(versions[dependency] ?? range);
      expect(range, `${name} on ${dependency}`).toMatch(/^\d+\.\d+\.\d+$/);
    }
  }
});

test("a production install stays below 150 MB", async () => {
  const bytes = await sizeOf(join(app, "node_modules"));
  const packages = (await readdir(join(app, "node_modules"), { recursive: true })).filter((path) =>
    /(?:^|node_modules\/)(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path),
  ).length;
  process.stdout.write(
    `production install: ${Math.round(bytes / 1e6)} MB in ${packages} packages\n`,
  );
  expect(bytes).toBeLessThan(MAX_INSTALL_BYTES);
});

test("the installed command says its version, runs tools, lists them and finds itself well", async () => {
  const launcher = join(app, "node_modules/.bin/cookie");
  const cookie = (...args: string[]) => runCookie(environment, args, { launcher });
  await writeFile(join(environment.cwd, "a.txt"), "one\ntwo\n");
  const version = packed.find(({ name }) => name === "@cookie-agent/cli")?.version;

  expect(await cookie("--version")).toMatchObject({ exitCode: 0, stdout: `${version}\n` });
  const script = 'call read {"filePath":"a.txt"}\ncall bash {"command":"wc -l < a.txt"}';
  const ran = await cookie("run", "-m", "offline/script", "--allowed-tools", "bash", script);
  expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
  expect(ran.stdout).toMatch(/- read: ok: .* 1: one 2: two .*\n- bash: ok: \[stdout\] +2 /);
  const tools = await cookie("tool", "list");
  expect(tools.stdout.match(/^\w+ +builtin\.\w+/gm)).toHaveLength(4);
  const doctor = await cookie("doctor", "--json");
  expect(doctor.exitCode, doctor.stdout).toBe(0);
  expect(doctor.stdout).not.toContain(REPOSITORY);
});

test("the entries of the packed contract load, and its types check a first plugin", async () => {
  const entries = ["sdk/protocol", "sdk/rpc", "sdk/plugin", "sdk/client", "sdk/testing", "kernel"];
  const imports = entries.map((entry) => `await import("@cookie-agent/${entry}");`).join("\n");
  await writeFile(join(app, "imports.js"), `${imports}\nconsole.log("loaded");\n`);
  const { stdout } = await run(process.execPath, ["imports.js"], { cwd: app });
  expect(stdout).toBe("loaded\n");

  const blocks = codeBlocks("docs/guides/your-first-plugin.md", "In TypeScript");
  const source = blocks.find(({ language }) => language === "ts")?.text ?? "";
  await writeFile(join(app, "plugin.ts"), source);
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2023"];
  await run(join(TOOLS, "tsc"), [...options, "--skipLibCheck", "plugin.ts"], {
    cwd: app,
  });
});

function tarballs(): string[] {
  return packed.map(({ filename }) => join(root, filename));
}

async function sizeOf(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
