import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { providerToml, startModelServer } from "../../support/model-server.ts";
import { runCookie } from "../../support/run-cookie.ts";
import { CAN_OPEN_TERMINAL, runInTerminal } from "../../support/run-in-terminal.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { useProject } from "../../support/use-project.ts";

const SLOW_CALL = 'call bash {"command":"sleep 0.5"}\n---\nsay done';
const HELD_CALL = 'call bash {"command":"until [ -e go ]; do sleep 0.02; done"}\n---\nsay done';

function offline(script: string, ...args: string[]): string[] {
  return ["run", "-m", "offline/script", "--permission-mode=yolo", ...args, script];
}

/** Lets a held call go once the screen shows it. */
function goOnceShown({ cwd }: TempProject): { onScreen(screen: string): void } {
  return {
    onScreen: (screen) => {
      if (screen.includes("until [ -e go ]")) writeFileSync(join(cwd, "go"), "");
    },
  };
}

const QUESTION = "Trust this content? [y]es, [N]o, go on without it, [q]uit: ";

/** A directory whose own plugin leaves a mark when it is started. */
async function useForeignProject(): Promise<{ project: TempProject; mark: string }> {
  const project = await useProject();
  const mark = join(project.cwd, "started");
  const plugin = `[plugins.sneaky]\ncommand = "/bin/sh"\nargs = ["-c", "touch '${mark}'"]\n`;
  const server = '[mcp.servers.far]\nurl = "https://mcp.example/${env:FAR_TOKEN}"\n';
  await project.write(".cookie-agent/config.toml", `${plugin}${server}`);
  await project.write(".cookie-agent/agents/local.md", "---\n---\n");
  return { project, mark };
}

describe.runIf(CAN_OPEN_TERMINAL)(
  "a directory with a .cookie-agent of its own, in a terminal",
  () => {
    test("[C-236] what would be executed is shown, and no is the default", async () => {
      const { project, mark } = await useForeignProject();
      const { exitCode, screen } = await runInTerminal(project, offline("say hi"), {
        type: [{ after: QUESTION, text: "\n" }],
      });
      expect(exitCode).toBe(0);
      expect(screen).toContain(`the plugin sneaky: runs /bin/sh -c touch '${mark}'`);
      expect(screen).toContain("the MCP server far: https://mcp.example/${env:FAR_TOKEN}");
      expect(screen).toContain("a reading of the environment: FAR_TOKEN");
      expect(screen).toContain("the agent local");
      expect(screen).toContain("hi\r\n");
      expect([existsSync(mark), existsSync(join(project.stateDir, "trust.json"))]).toEqual([
        false,
        false,
      ]);
    });

    test("[C-236] [C-233] yes is kept for exactly this content: it is asked again only after a change", async () => {
      const { project, mark } = await useForeignProject();
      await project.write(
        ".cookie-agent/config.toml",
        `[plugins.sneaky]\ncommand = "/bin/sh"\nargs = ["-c", "touch '${mark}'"]\n`,
      );
      await rm(join(project.cwd, ".cookie-agent/agents"), { recursive: true });
      const yes = await runInTerminal(project, offline("say hi"), {
        type: [{ after: QUESTION, text: "y\n" }],
      });
      expect([yes.exitCode, existsSync(mark)]).toEqual([0, true]);
      const again = await runInTerminal(project, offline("say hi"));
      expect([again.exitCode, again.screen.includes(QUESTION)]).toEqual([0, false]);
      await project.write(".cookie-agent/skills/late/SKILL.md", "---\n---\n");
      await rm(mark);
      const changed = await runInTerminal(project, offline("say hi"), {
        type: [{ after: QUESTION, text: "no\n" }],
      });
      expect(changed.screen).toContain("This directory changed since it was trusted.");
      expect(changed.screen).toContain("the skill late");
      expect([changed.exitCode, existsSync(mark)]).toEqual([0, false]);
    });

    test.for([
      ["q", "q\n"],
      ["Ctrl-C", "\u0003"],
      ["the end of input", "\u0004"],
    ] as const)("[C-236] %s runs nothing at all", async ([, text]) => {
      const { project, mark } = await useForeignProject();
      const { exitCode, screen } = await runInTerminal(project, offline("say hi"), {
        type: [{ after: QUESTION, text }],
      });
      expect(exitCode).toBe(4);
      expect(screen).toContain("nothing was run");
      expect([screen.includes("hi\r\n"), existsSync(mark)]).toEqual([false, false]);
    });

    test.for([
      { args: ["--output", "json"], redirect: "" },
      { args: [], redirect: ">out.txt" },
      { args: [], redirect: "</dev/null" },
      { args: ["--trust-workspace"], redirect: "" },
    ])("[C-237] nobody is asked with $args $redirect", async ({ args, redirect }) => {
      const { project } = await useForeignProject();
      await rm(join(project.cwd, ".cookie-agent"), { recursive: true });
      await project.write(".cookie-agent/config.toml", '[plugins.sneaky]\ncommand = "/bin/true"\n');
      const { exitCode, screen } = await runInTerminal(project, offline("say hi", ...args), {
        redirect,
      });
      expect([exitCode, screen.includes("Trust this content?")]).toEqual([0, false]);
    });
  },
);

describe.runIf(CAN_OPEN_TERMINAL)("cookie plugin trust in a terminal", () => {
  test.for([
    ["y", "y\n", 0],
    ["nothing", "\n", 1],
    ["Ctrl-C", "\u0003", 1],
    ["the end of input", "\u0004", 1],
  ] as const)("%s is an answer, and only yes is one that trusts", async ([, text, exitCode]) => {
    const project = await useProject();
    const config = fixturePlugin("echo");
    const file = await project.writeState("config.toml", config);
    const asked = await runInTerminal(project, ["plugin", "trust", "echo"], {
      type: [{ after: "Trust this plugin? [y/N] ", text }],
    });
    expect(asked.exitCode).toBe(exitCode);
    expect(asked.screen).toContain(exitCode === 0 ? "trusted: echo" : "nothing was trusted");
    expect((await readFile(file, "utf8")) === config).toBe(exitCode !== 0);
  });
});

describe.runIf(CAN_OPEN_TERMINAL)("cookie run in a terminal", () => {
  test("[C-224] shows what is running and for how long, and erases it before the answer", async () => {
    const project = await useProject();

    const { exitCode, screen } = await runInTerminal(
      project,
      offline(HELD_CALL),
      goOnceShown(project),
    );

    expect(exitCode).toBe(0);
    expect(screen).toMatch(/\d+ s · [^\r]*until \[ -e go \]/);
    expect(screen).toMatch(/\r\u001B\[Kdone\r\n$/);
  });

  test("[C-224] streaming text shows while the model talks", async () => {
    const project = await useProject();
    let finish = (): void => undefined;
    const server = await startModelServer({
      text: "thinking aloud",
      until: new Promise<void>((resolve) => {
        finish = resolve;
      }),
    });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const running = runInTerminal(project, ["run", "hello"], {
      onScreen: (screen) => {
        if (screen.includes("s · thinking aloud")) finish();
      },
    });

    expect(await running).toMatchObject({ exitCode: 0 });
  });

  test("[C-224] progress goes to stderr alone: a redirected stdout holds the answer", async () => {
    const project = await useProject();

    const { screen } = await runInTerminal(project, offline(HELD_CALL), {
      redirect: ">out.txt",
      ...goOnceShown(project),
    });

    expect(await readFile(join(project.cwd, "out.txt"), "utf8")).toBe("done\n");
    expect(screen).toMatch(/\d+ s · /);
    expect(screen).toMatch(/\r\u001B\[K$/);
  });

  test.for([
    { args: ["--verbose"], env: {}, name: "beside --verbose" },
    { args: [], env: { TERM: "dumb" }, name: "on a dumb terminal" },
  ])("[C-224] draws nothing $name", async ({ args, env }) => {
    const project = await useProject();

    const { exitCode, screen } = await runInTerminal(project, offline(SLOW_CALL, ...args), { env });

    expect(exitCode).toBe(0);
    expect(screen).not.toContain("\u001B");
  });

  test("control characters of a model never reach the screen", async () => {
    const project = await useProject();
    const server = await startModelServer({ text: "a\u001B]0;title\u0007b\u009B31mc\td\ne" });
    onTestFinished(() => server.close());
    await project.writeState("config.toml", providerToml(server));

    const { exitCode, screen } = await runInTerminal(project, ["run", "hello"]);

    expect(exitCode).toBe(0);
    expect(screen.endsWith("a]0;titleb31mc\td\r\ne\r\n")).toBe(true);
    expect(screen).not.toContain("\u0007");
    expect(screen).not.toContain("\u009B");
  });

  test("a second Ctrl-C leaves the line clean and ends with 130", async () => {
    const project = await useProject();
    const pid = join(project.cwd, "pid");
    // its plugin's process is stopped and cannot end it, so that the run waits for it as long as it ever does
    const command = "kill -STOP $PPID; echo $$ > pid; while :; do sleep 1; done";
    onTestFinished(() => {
      if (existsSync(pid))
        spawnSync("kill", ["-KILL", "--", `-${readFileSync(pid, "utf8").trim()}`]);
    });

    const { exitCode, screen } = await runInTerminal(
      project,
      offline(`call bash ${JSON.stringify({ command })}`),
      {
        type: [
          { after: (shown) => shown.includes("kill -STOP") && existsSync(pid), text: "\u0003" },
          { after: "Ctrl-C again ends at once", text: "\u0003" },
        ],
      },
    );

    expect(exitCode).toBe(130);
    expect(screen).toMatch(/again ends at once\r\n[^\n]*$/);
    expect(screen).not.toContain("cancelled");
  });
});

describe.runIf(CAN_OPEN_TERMINAL)("cookie trust in a terminal", () => {
  const QUESTION = "Trust this content? [y/N] ";

  test.for([
    { answer: "y\r", exitCode: 0, trusted: true },
    { answer: "\r", exitCode: 1, trusted: false },
    { answer: "n\r", exitCode: 1, trusted: false },
  ])("[C-236] asks, and $answer leaves trusted=$trusted", async ({ answer, exitCode, trusted }) => {
    const project = await useProject();
    await project.write(".cookie-agent/config.toml", "[budget]\nmax_turns = 3\n");

    const asked = await runInTerminal(project, ["trust"], {
      type: [{ after: QUESTION, text: answer }],
    });
    const listed = await runCookie(project, ["trust", "--list"]);

    expect(asked.exitCode).toBe(exitCode);
    expect(asked.screen).toContain("config.toml");
    expect(listed.stdout.includes(project.cwd)).toBe(trusted);
  });
});
