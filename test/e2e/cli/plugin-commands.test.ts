import { execFileSync, spawnSync } from "node:child_process";
import { chmod, lstat, readdir, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { fixtureDirectory, fixturePlugin } from "../../support/fixture-plugin.ts";
import { isAlive } from "../../support/is-alive.ts";
import { runCookie, startCookie } from "../../support/run-cookie.ts";
import { CAN_OPEN_TERMINAL, runInTerminal } from "../../support/run-in-terminal.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";
import { linkPackages, readerShell } from "../guides/reader-shell.ts";

const hasJq = spawnSync("/bin/sh", ["-c", "command -v jq"], { env: {} }).status === 0;
const hasPython = spawnSync("/usr/bin/env", ["python3", "--version"], { env: {} }).status === 0;
const echo = (project: TempProject, ...args: string[]) => runCookie(project, ["plugin", ...args]);

describe("cookie plugin init", () => {
  test.for([
    ["python", hasPython],
    ["shell", hasJq],
  ] as const)(
    "[E-180] [E-181] the %s template passes check, test and a call",
    async ([language, present], { skip }) => {
      skip(!present, `${language} needs a program that is not installed`);
      const project = await useProject();
      expect((await echo(project, "init", "word-count", "--language", language)).exitCode).toBe(0);
      const cwd = join(project.cwd, "word-count");
      const here = { ...project, cwd };
      expect((await echo(here, "check")).exitCode).toBe(0);
      const tested = await echo(here, "test");
      expect(tested.exitCode, tested.stdout).toBe(0);
      const args = ["call", "word_count", "word_count", '{"text":"one two"}', "--path", "."];
      const called = await echo(here, ...args, "--allowed-tools", "plugin:word_count");
      expect(called).toMatchObject({ exitCode: 0, stdout: "2\n" });
    },
  );

  test("[E-038] the TypeScript template builds, passes its own tests, check, test and a call", async () => {
    const project = await useProject();
    const type = readerShell(project);
    expect((await echo(project, "init", "word-count")).exitCode).toBe(0);
    const cwd = join(project.cwd, "word-count");
    await linkPackages(cwd, ["@cookie-agent/sdk", "zod", "esbuild"]);
    const built = await type("npm run build && npm test", cwd);
    expect(built.exitCode, built.printed).toBe(0);
    const here = { ...project, cwd };
    expect((await echo(here, "check")).exitCode).toBe(0);
    const tested = await echo(here, "test");
    expect(tested.exitCode, tested.stdout).toBe(0);
    const args = ["call", "word_count", "word_count", '{"text":"one two\\nthree"}', "--path", "."];
    const called = await echo(here, ...args, "--allowed-tools", "plugin:word_count");
    expect(called).toMatchObject({ exitCode: 0, stdout: "2\n1\n" });
  });

  test("overwrites nothing and takes no name that cannot be one", async () => {
    const project = await useProject();
    await project.write("mine/notes.txt", "keep");
    const refused = await echo(project, "init", "mine", "--language", "shell");
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("not empty") as string,
    });
    expect(await readdir(join(project.cwd, "mine"))).toEqual(["notes.txt"]);
    expect((await echo(project, "init", "9lives")).exitCode).toBe(2);
    expect((await echo(project, "init", "")).exitCode).toBe(2);
    await project.write("file", "keep");
    const file = await echo(project, "init", "file");
    expect(file.exitCode).toBe(1);
    expect(file.stderr).toContain("name a new folder");
    expect((await readdir(project.cwd)).sort()).toEqual(["file", "mine"]);
  });

  test("what it says to type can be typed for a folder with a space and a quote", async () => {
    const project = await useProject();
    const made = await echo(project, "init", "bob's tool/word count", "--language", "shell");
    expect(made.exitCode).toBe(0);
    const cd = made.stdout.split("\n").find((line) => line.startsWith("  cd ")) ?? "";
    const typed = spawnSync("/bin/sh", ["-c", `${cd} && ls`], {
      cwd: project.cwd,
      encoding: "utf8",
    });
    expect(typed.stdout).toContain("cookie-plugin.json");
  });
});

describe("cookie plugin check", () => {
  test("[E-034] [E-114] names line and member of each problem and what a tier takes back", async () => {
    const project = await useProject();
    const manifest = {
      manifest: 1,
      name: "odd",
      version: "one",
      protocol: ["0.1.0"],
      runtime: { kind: "exec", command: "./run" },
      colour: "red",
    };
    await project.write("odd/cookie-plugin.json", JSON.stringify(manifest, null, 2));
    const wrong = await echo(project, "check", "odd");
    expect(wrong).toMatchObject({
      exitCode: 1,
      stdout:
        "error: cookie-plugin.json:4: version: expected a semantic version\nerror: cookie-plugin.json:12: colour: unknown member\n",
    });
    const tools = [
      {
        name: "odd",
        description: "Odd.",
        parameters: { type: "object", properties: {} },
        permission_name: "odd",
        concurrency: "parallel",
      },
    ];
    const { colour, ...rest } = { ...manifest, version: "1.0.0", tools };
    await project.write("odd/cookie-plugin.json", JSON.stringify(rest, null, 2));
    const file = await project.write("odd/run", "touch ran\n");
    const notExecutable = await echo(project, "check", "odd", "--json");
    expect(JSON.parse(notExecutable.stdout)).toMatchObject({
      problems: [{ member: "runtime.command", line: 10 }],
    });
    await chmod(file, 0o755);
    const right = await echo(project, "check", "odd");
    expect(right.exitCode).toBe(0);
    expect(right.stdout).toContain("untrusted tools.odd.concurrency is beyond the tier untrusted");
    expect(right.stdout).toContain("trusted   everything it declares");
    expect(await readdir(project.cwd)).toEqual(["odd"]);
  });

  test("[E-030] a syntax error says where and what, a byte order mark is none, and a missing file names the folder", async () => {
    const project = await useProject();
    await project.write("odd/cookie-plugin.json", '{\n  "manifest": 1,\n}\n');
    const wrong = await echo(project, "check", "odd");
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stdout).toMatch(
      /^error: cookie-plugin\.json:3: the file: not JSON in UTF-8: \S.*\n$/,
    );
    const right = JSON.stringify({
      manifest: 1,
      name: "odd",
      version: "1.0.0",
      protocol: ["0.1.0"],
      runtime: { kind: "exec", command: "cat" },
    });
    await project.write("odd/cookie-plugin.json", `\uFEFF${right}`);
    expect((await echo(project, "check", "odd")).exitCode).toBe(0);
    const missing = await echo(project, "check", "nowhere");
    expect(missing.exitCode).toBe(1);
    expect(missing.stderr).toContain(`no cookie-plugin.json in ${join(project.cwd, "nowhere")}`);
  });
});

describe("cookie plugin test", () => {
  test("[E-190] a failure is told as text, JSON and JUnit, with exit code 1", async () => {
    const project = await useProject();
    const folder = fixtureDirectory("deaf");
    const only = ["--only", "C-08", "--only", "C-02"];
    const text = await echo(project, "test", folder, ...only);
    expect(text.exitCode).toBe(1);
    expect(text.stdout).toMatch(/^failed {2}C-0\d .*\n {8}the plugin .*; it must /m);
    const json = await echo(project, "test", folder, ...only, "--json", "--junit", "report.xml");
    expect(JSON.parse(json.stdout)).toMatchObject({ plugin: "deaf", outcome: "failed" });
    const xml = await readFile(join(project.cwd, "report.xml"), "utf8");
    expect(xml).toContain('<testsuite name="deaf" tests="2"');
    expect(xml).toContain("<failure message=");
  });

  test("[E-021] [E-034] a manifest that the kernel refuses is told with its line before anything is started", async () => {
    const project = await useProject();
    const manifest = {
      manifest: 1,
      name: "odd",
      version: "1.0.0",
      protocol: ["9.0.0"],
      runtime: { kind: "exec", command: "./run" },
    };
    await project.write("odd/cookie-plugin.json", JSON.stringify(manifest, null, 2));
    await chmod(await project.write("odd/run", "#!/bin/sh\ntouch ran\n"), 0o755);
    const tested = await echo(project, "test", "odd");
    expect(tested).toMatchObject({ exitCode: 1, stdout: "" });
    expect(tested.stderr).toMatch(/cookie-plugin\.json:5: protocol: /);
    const unknown = await echo(project, "test", fixtureDirectory("echo"), "--only", "C-99");
    expect(unknown).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test.skipIf(!hasPython)("a program without manifest is tried by its command", async () => {
    const project = await useProject();
    const guide = await readFile(
      join(import.meta.dirname, "../../fixtures/plugins/without-manifest.py"),
      "utf8",
    );
    await project.write("p.py", guide);
    const args = [
      "--command",
      "/usr/bin/env",
      "--arg",
      "python3",
      "--arg",
      "p.py",
      "--name",
      "bare",
    ];
    const tested = await echo(project, "test", ...args, "--only", "C-04", "--json");
    const { results } = JSON.parse(tested.stdout) as { results: { check: string }[] };
    expect(results.map(({ check }) => check)).toEqual(["C-04"]);
  });
});

test.skipIf(process.platform === "win32")(
  "[E-190] Ctrl-C during cookie plugin test leaves neither the plugin nor a folder",
  async () => {
    const project = await useProject();
    const pidFile = join(project.cwd, "pid");
    const script = `trap '' INT TERM; echo $$ > ${pidFile}; exec sleep 600`;
    const manifest = {
      manifest: 1,
      name: "odd",
      version: "1.0.0",
      protocol: ["0.1.0"],
      runtime: { kind: "exec", command: "/bin/sh", args: ["-c", script] },
    };
    await project.write("odd/cookie-plugin.json", JSON.stringify(manifest));
    await project.write("tmp/.keep", "");
    const { child, result } = startCookie(project, ["plugin", "test", "odd"], {
      env: { TMPDIR: join(project.cwd, "tmp") },
    });
    const pid = await pidIn(pidFile);
    child.kill("SIGINT");
    expect(await result).toMatchObject({
      exitCode: 1,
      stderr: "stopping; Ctrl-C again ends at once\nerror: the test was cancelled\n",
    });
    expect(isAlive(pid)).toBe(false);
    expect(await readdir(join(project.cwd, "tmp"))).toEqual([".keep"]);
  },
);

test.runIf(CAN_OPEN_TERMINAL)(
  "[E-190] a terminal that closes during cookie plugin test leaves neither the plugin nor a folder",
  async () => {
    const project = await useProject();
    const pids = join(project.cwd, "pids");
    // Heeds nothing, and stays when its input ends.
    await project.write(
      "odd/main.mjs",
      `import { appendFileSync } from "node:fs";
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) process.on(signal, () => {});
appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n");
setInterval(() => {}, 1000);
process.stdin.setEncoding("utf8").on("data", (text) => {
  if (!text.includes("plugin/initialize")) return;
  const result = { protocol_version: "0.1.0", name: "odd", version: "1.0.0" };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id: 0, result }) + "\\n");
});
`,
    );
    const manifest = {
      manifest: 1,
      name: "odd",
      version: "1.0.0",
      protocol: ["0.1.0"],
      runtime: { kind: "node", entry: "main.mjs" },
    };
    await project.write("odd/cookie-plugin.json", JSON.stringify(manifest));
    await project.write("tmp/.keep", "");
    const tested = await runInTerminal(
      project,
      ["plugin", "test", "odd", "--only", "C-05", "--only", "C-08"],
      {
        closeAfter: "C-05",
        env: { TMPDIR: join(project.cwd, "tmp") },
      },
    );
    expect(tested.screen).toContain("passed  C-05");
    const started = (await readFile(pids, "utf8")).trimEnd().split("\n").map(Number);
    await vi.waitFor(() => expect(started.filter(isAlive)).toEqual([]), { timeout: 20_000 });
    await vi.waitFor(
      async () => expect(await readdir(join(project.cwd, "tmp"))).toEqual([".keep"]),
      { timeout: 20_000 },
    );
  },
);

describe("cookie plugin call", () => {
  test("permission rules apply, and each end has its exit code", async () => {
    const project = await useProject();
    const call = (args: string, ...more: string[]) =>
      echo(project, "call", "builtin.bash", "bash", args, ...more);
    const allowed = ["--allowed-tools", "bash"];
    const done = await call('{"command":"echo hi"}', ...allowed);
    expect(done.exitCode).toBe(0);
    expect(done.stdout).toContain("hi");
    const refused = await call('{"command":"echo hi"}');
    expect(refused).toMatchObject({ exitCode: 3, stdout: "" });
    const wrong = await call('{"command":1}', ...allowed);
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stderr).toContain("invalid_arguments");
    expect((await call("{", ...allowed)).exitCode).toBe(2);
    const late = await call('{"command":"echo begun; sleep 60"}', ...allowed, "--timeout", "2");
    expect(late.exitCode).toBe(4);
    expect(late.stderr).toContain("begun");
    expect(late.stderr).toContain("longer than 2 s (--timeout)");
    expect((await echo(project, "call", "nobody", "bash")).exitCode).toBe(2);
    await expect(readdir(join(project.stateDir, "sessions"))).rejects.toThrow("ENOENT");
  });
});

test.skipIf(process.platform === "win32")(
  "[E-047] a second Ctrl-C during cookie plugin call leaves neither the plugin nor a folder",
  async () => {
    const project = await useProject();
    const pidFile = join(project.cwd, "pid");
    const answer = JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      result: { protocol_version: "0.1.0", name: "odd", version: "1.0.0" },
    });
    const script = `trap '' INT TERM; read line; echo '${answer}'; read line; echo $$ > ${pidFile}; exec sleep 600`;
    const tool = { name: "odd", description: "Odd.", parameters: { type: "object" } };
    const manifest = {
      manifest: 1,
      name: "odd",
      version: "1.0.0",
      protocol: ["0.1.0"],
      runtime: { kind: "exec", command: "/bin/sh", args: ["-c", script] },
      tools: [{ ...tool, permission_name: "odd" }],
    };
    await project.write("odd/cookie-plugin.json", JSON.stringify(manifest));
    await project.write("tmp/.keep", "");
    const { child, result } = startCookie(
      project,
      ["plugin", "call", "odd", "odd", "--path", "odd", "--allowed-tools", "plugin"],
      { env: { TMPDIR: join(project.cwd, "tmp") } },
    );
    const pid = await pidIn(pidFile);
    // Both wait for it when it goes on.
    for (const signal of ["SIGSTOP", "SIGINT", "SIGTERM", "SIGCONT"] as const) {
      child.kill(signal);
    }
    expect(await result).toMatchObject({ exitCode: 130 });
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 20_000 });
    expect(await readdir(join(project.cwd, "tmp"))).toEqual([".keep"]);
  },
);

describe("cookie plugin list, status, logs", () => {
  test("[B148] [B149] [E-044] one that cannot be used is shown with its reason beside those that can", async () => {
    const project = await useProject();
    await project.writeState(
      "config.toml",
      `${fixturePlugin("echo")}[plugins.gone]\npath = "/nowhere/at/all"\n`,
    );
    const list = await echo(project, "list");
    expect(list.exitCode).toBe(0);
    expect(list.stdout).toMatch(/^gone +- +untrusted +user +failed$/m);
    expect(list.stdout).toMatch(/^echo +\S+ +untrusted +user +disconnected +\S/m);
    const gone = await echo(project, "status", "gone");
    expect(gone.exitCode).toBe(1);
    expect(gone.stdout).toContain("cookie-plugin.json cannot be read (ENOENT)");
    expect((await echo(project, "status", "ecco")).stderr).toContain("did you mean echo?");
  });

  test.skipIf(!hasPython)(
    "[E-044] a program without manifest is listed with the tools that it introduced",
    async () => {
      const project = await useProject();
      const program = join(import.meta.dirname, "../../fixtures/plugins/without-manifest.py");
      await project.writeState(
        "config.toml",
        `[plugins.bare]\ncommand = "/usr/bin/env"\nargs = ["python3", ${JSON.stringify(program)}]\n`,
      );
      const { plugins } = JSON.parse((await echo(project, "list", "--json")).stdout) as {
        plugins: { plugin: string; state: string; tools: string[] }[];
      };
      expect(plugins.find(({ plugin }) => plugin === "bare")).toMatchObject({ state: "connected" });
    },
  );

  test("[B151] two plugins with one tool: the loser says who owns it", async () => {
    const project = await useProject();
    const manifest = (name: string) =>
      JSON.stringify({
        manifest: 1,
        name,
        version: "1.0.0",
        protocol: ["0.1.0"],
        runtime: { kind: "exec", command: "/bin/cat" },
        tools: [
          {
            name: "shared",
            description: "Shared.",
            parameters: { type: "object", properties: {} },
            permission_name: name,
          },
        ],
      });
    const entries = await Promise.all(
      ["one", "two"].map(async (name) => {
        await project.write(`${name}/cookie-plugin.json`, manifest(name));
        return `[plugins.${name}]\npath = ${JSON.stringify(join(project.cwd, name))}\n`;
      }),
    );
    await project.writeState("config.toml", entries.join("\n"));
    const { plugins } = JSON.parse((await echo(project, "status", "--json")).stdout) as {
      plugins: { plugin: string; tools: string[]; shadowed: unknown[] }[];
    };
    const by = (name: string) => plugins.find(({ plugin }) => plugin === name);
    expect(by("two")?.tools).toEqual(["shared"]);
    expect(by("one")?.shadowed).toEqual([{ tool: "shared", by: "two" }]);
    expect((await echo(project, "status", "one")).stdout).toContain(
      "shadowed  shared, owned by two",
    );
  });

  test("[E-010] what a plugin writes to stderr is in its log file, for the owner alone", async () => {
    const project = await useProject();
    await project.write(
      "noisy/cookie-plugin.json",
      JSON.stringify({
        manifest: 1,
        name: "noisy",
        version: "1.0.0",
        protocol: ["0.1.0"],
        runtime: { kind: "exec", command: "/bin/sh", args: ["-c", "echo something broke >&2"] },
        tools: [
          {
            name: "noisy",
            description: "Noisy.",
            parameters: { type: "object", properties: {} },
            permission_name: "noisy",
          },
        ],
      }),
    );
    await project.writeState(
      "config.toml",
      `[plugins.noisy]\npath = ${JSON.stringify(join(project.cwd, "noisy"))}\n`,
    );
    expect((await echo(project, "logs", "noisy")).stdout).toContain("nothing was logged");
    const called = await echo(project, "call", "noisy", "noisy", "--allowed-tools", "plugin");
    expect(called.exitCode).toBe(1);
    const logs = await echo(project, "logs", "noisy");
    expect(logs.stdout).toMatch(/^\d{4}-\S+Z info something broke$/m);
    expect((await echo(project, "logs", "../../etc/passwd")).exitCode).toBe(2);
    execFileSync("mkfifo", [join(project.stateDir, "logs/piped.log")]);
    expect((await echo(project, "logs", "piped")).stdout).toContain("nothing was logged");
    const misspelt = await echo(project, "logs", "noise");
    expect(misspelt).toMatchObject({ exitCode: 2, stdout: "" });
    expect(misspelt.stderr).toContain("no plugin is called noise");
  });
});

describe("cookie plugin trust", () => {
  const CONFIG = (path: string) =>
    `# my plugins\n[plugins.echo] # the first\npath = ${JSON.stringify(path)}\n# keep this\n\n[plugins.gone]\npath = "/nowhere"\n`;

  test("[E-112] pins the manifest in the user's file and leaves every other line alone", async () => {
    const project = await useProject();
    const config = CONFIG(fixtureDirectory("echo"));
    const file = await project.writeState("config.toml", config);
    const refused = await echo(project, "trust", "echo");
    expect(refused.exitCode).toBe(2);
    expect(await readFile(file, "utf8")).toBe(config);
    expect((await echo(project, "trust", "echo", "--yes")).exitCode).toBe(0);
    const edited = await readFile(file, "utf8");
    const added = edited.split("\n").filter((line) => !config.split("\n").includes(line));
    expect(added).toEqual([
      'trust = "trusted"',
      expect.stringMatching(/^integrity = "sha256:[0-9a-f]{64}"$/) as string,
    ]);
    expect(
      edited
        .split("\n")
        .filter((line) => !added.includes(line))
        .join("\n"),
    ).toBe(config);
    const status = JSON.parse((await echo(project, "status", "echo", "--json")).stdout) as {
      plugins: { tier: string }[];
    };
    expect(status.plugins[0]?.tier).toBe("trusted");
  });

  test("[E-112] several at once all count, in a file that is a link and has a mode of its own", async () => {
    const project = await useProject();
    const names = ["one", "two", "three", "four"];
    const config = names.map(
      (name) => `[plugins.${name}]\npath = ${JSON.stringify(fixtureDirectory("echo"))}\n`,
    );
    const kept = await project.write("kept.toml", config.join(""));
    await chmod(kept, 0o640);
    await project.writeState("here", "");
    const file = join(project.stateDir, "config.toml");
    await symlink(kept, file);
    const trusted = names.map((name) => echo(project, "trust", name, "--yes"));
    for (const { exitCode } of await Promise.all(trusted)) expect(exitCode).toBe(0);
    expect((await readFile(kept, "utf8")).match(/^integrity = /gm)).toHaveLength(names.length);
    expect((await lstat(file)).isSymbolicLink()).toBe(true);
    expect((await stat(kept)).mode & 0o777).toBe(0o640);
  });

  test("[E-113] a pin that no longer fits is replaced; what cannot be pinned is refused", async () => {
    const project = await useProject();
    const config = CONFIG(fixtureDirectory("echo")).replace(
      "# keep this",
      `trust = "trusted"\nintegrity = "sha256:${"0".repeat(64)}" # old`,
    );
    const file = await project.writeState("config.toml", config);
    expect((await echo(project, "status", "echo")).stdout).toContain("integrity_mismatch");
    expect((await echo(project, "trust", "echo", "--yes")).exitCode).toBe(0);
    const edited = await readFile(file, "utf8");
    expect(edited).toMatch(/^integrity = "sha256:[0-9a-f]{64}" # old$/m);
    expect((await echo(project, "status", "echo")).exitCode).toBe(0);
    expect((await echo(project, "trust", "gone", "--yes")).exitCode).toBe(1);
    const nobody = await echo(project, "trust", "no.body", "--yes");
    expect(nobody.exitCode).toBe(1);
    expect(nobody.stderr).toContain('[plugins."no.body"]');
    expect((await echo(project, "trust", "builtin.fs", "--yes")).stderr).toContain("is shipped");
    await project.writeState(
      "config.toml",
      `plugins.echo = { path = ${JSON.stringify(fixtureDirectory("echo"))} }\n`,
    );
    const inline = await echo(project, "trust", "echo", "--yes");
    expect(inline).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("cannot be edited here") as string,
    });
  });
});

/** The process id that a program writes once it is as far as that. */
function pidIn(file: string): Promise<number> {
  return vi.waitFor(
    async () => {
      const text = await readFile(file, "utf8");
      expect(text).toMatch(/\n$/);
      return Number(text);
    },
    { timeout: 20_000 },
  );
}
