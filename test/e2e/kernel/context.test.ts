import { RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { pick } from "../../support/model-server.ts";
import { ALLOW_ALL, agentDocument, openTestKernel } from "../../support/open-test-kernel.ts";

const bash = (command: string) => ({ name: "bash", arguments: { command } });

describe("AGENTS.md", () => {
  test("[S-262] [C-246] both files reach the model, the user's first", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "ok" }],
      prepare: async (project) => {
        await project.writeState("AGENTS.md", "From the user.");
        await project.write("AGENTS.md", "From the workspace.");
      },
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("agent_md_loaded")).toEqual([
      {
        type: "agent_md_loaded",
        entries: [
          { source: "user", content: "From the user.", truncated: false, original_bytes: 14 },
          {
            source: "workspace",
            content: "From the workspace.",
            truncated: false,
            original_bytes: 19,
          },
        ],
      },
    ]);
    const system = String(pick(kernel.server.requests[0]?.body, "messages", 0, "content"));
    expect(system).toMatch(/You are under test\..*From the user\..*From the workspace\./s);
  });

  test("[S-263] [C-246] a long file is cut between characters and says so", async () => {
    const kernel = await openTestKernel({
      config: "[context]\nagents_md_max_bytes = 10\n",
      answers: [{ text: "ok" }],
      prepare: (project) => project.write("AGENTS.md", "123456789é and more"),
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.payloads("agent_md_loaded")[0]?.entries).toEqual([
      { source: "workspace", content: "123456789", truncated: true, original_bytes: 20 },
    ]);
  });

  test("[S-262] [C-246] agents_md = false leaves them out", async () => {
    const kernel = await openTestKernel({
      config: "[context]\nagents_md = false\n",
      answers: [{ text: "ok" }],
      prepare: (project) => project.write("AGENTS.md", "Nobody reads this."),
    });
    const { watch } = await kernel.run("Hi");
    expect(watch.types).not.toContain("agent_md_loaded");
    expect(JSON.stringify(kernel.server.requests)).not.toContain("Nobody reads this");
  });

  test("[S-262] it is read afresh for each run", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "ok" }, { text: "ok" }],
      prepare: (project) => project.write("AGENTS.md", "Old."),
    });
    const { sessionId } = await kernel.run("Hi");
    await kernel.project.write("AGENTS.md", "New.");
    await kernel.run("Again", { session: sessionId });
    const system = String(pick(kernel.server.requests[1]?.body, "messages", 0, "content"));
    expect(system).toContain("New.");
    expect(system).not.toContain("Old.");
  });
});

describe("the workspace's own configuration", () => {
  const prepare = async (project: {
    write(path: string, content: string): Promise<string>;
  }): Promise<void> => {
    await project.write(
      ".cookie-agent/config.toml",
      '[tools]\nexclude = ["bash"]\n[session_title]\nmax_chars = 3\n',
    );
    await project.write(
      ".cookie-agent/agents/primary.md",
      agentDocument(ALLOW_ALL, { prompt: "I am of the workspace." }),
    );
  };

  test("[C-231] is not in force until it is trusted, and a notice says so", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "ok" }], prepare });
    await kernel.run("Hi");
    expect(kernel.kernel.notices).toEqual([expect.stringMatching(/trust/)]);
    const { body } = kernel.server.requests[0] ?? {};
    expect(String(pick(body, "messages", 0, "content"))).toContain("You are under test.");
    const tools = (pick(body, "tools") as unknown[]).map((tool) => pick(tool, "function", "name"));
    expect(tools).toContain("bash");
  });

  test("trusted for this process it decides", async () => {
    const kernel = await openTestKernel({
      answers: [{ text: "ok" }],
      prepare,
      trust: "this_process",
    });
    await kernel.run("Hi");
    const { body } = kernel.server.requests[0] ?? {};
    expect(String(pick(body, "messages", 0, "content"))).toContain("I am of the workspace.");
    const tools = (pick(body, "tools") as unknown[]).map((tool) => pick(tool, "function", "name"));
    expect(tools).not.toContain("bash");
  });
});

describe("agents and the system prompt", () => {
  test("the system prompt is the agent's own with the working directory behind it", async () => {
    const kernel = await openTestKernel({ answers: [{ text: "ok" }] });
    await kernel.run("Hi");
    const system = String(pick(kernel.server.requests[0]?.body, "messages", 0, "content"));
    expect(system.startsWith("You are under test.")).toBe(true);
    expect(system).toContain(`Working directory: ${kernel.project.cwd}\n`);
  });

  test("the rules of an agent document decide call by call", async () => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument({
          read: { "*": "allow", "secret/*": "deny" },
          bash: { "git *": "allow", "*": "deny" },
        }),
      },
      answers: [
        {
          calls: [
            { name: "read", arguments: { filePath: "open.txt" } },
            { name: "read", arguments: { filePath: "secret/x.txt" } },
            bash("git --version"),
            bash("git --version && touch made"),
          ],
        },
        { text: "ok" },
      ],
      prepare: async (project) => {
        await project.write("open.txt", "open");
        await project.write("secret/x.txt", "closed");
      },
    });
    const { watch } = await kernel.run("Hi");
    const ends = watch.payloads("tool_call_terminated");
    const byIndex = ends.sort((a, b) => a.owner.content_index - b.owner.content_index);
    expect(byIndex.map(({ outcome, error }) => error?.code ?? outcome)).toEqual([
      "completed",
      "permission_denied",
      "completed",
      "permission_denied",
    ]);
  });

  test("the snapshot shows what can be run with what", async () => {
    const kernel = await openTestKernel({
      agents: {
        primary: agentDocument(ALLOW_ALL),
        helper: agentDocument({}, { mode: "subagent" }),
      },
    });
    const { snapshot } = await kernel.client.request(RuntimeSnapshotGet, {});
    expect(snapshot.default_agent).toBe("primary");
    expect(snapshot.agents.map(({ id, runnable_as_root }) => [id, runnable_as_root])).toEqual([
      ["explore", false],
      ["helper", false],
      ["primary", true],
    ]);
    expect(snapshot.tools.map(({ name, plugin }) => [name, plugin])).toEqual([
      ["bash", "builtin.bash"],
      ["edit", "builtin.fs"],
      ["read", "builtin.fs"],
      ["write", "builtin.fs"],
    ]);
    expect(snapshot.models.find(({ key }) => key === "custom.test/scripted")?.available).toBe(true);
  });

  test("[C-090] without an authored agent the built-in one asks before it acts", async () => {
    const kernel = await openTestKernel({
      agents: {},
      headless: true,
      answers: [{ calls: [bash("echo hi")] }, { text: "ok" }],
    });
    const { watch } = await kernel.run("Hi", {
      selection: { ...kernel.selection, agent: "default" },
    });
    expect(watch.payloads("approval_finalized")[0]?.decision.reason).toBe("unattended");
  });
});
