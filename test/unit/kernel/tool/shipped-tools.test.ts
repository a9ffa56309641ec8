import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PermissionRule } from "@cookie-agent/sdk/protocol";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { loadFirstParty } from "../../../../kernel/src/plugin/load-manifest.ts";
import { buildSlotTable } from "../../../../kernel/src/tool/tool-slots.ts";
import { entryFor, manifestOf, openHost, tempDirectory } from "../plugin/open-host.ts";
import {
  allowAll,
  declareTool,
  NO_SELECTION,
  pluginFacts,
  stringSchema,
} from "./dispatch-fixture.ts";
import { openShippedRoom, type ShippedRoom } from "./shipped-fixture.ts";

let room: ShippedRoom;
beforeAll(async () => {
  room = await openShippedRoom();
  return () => room.close();
});
const inside = (name: string) => join(room.workspace, name);
const codes = (outcomes: Awaited<ReturnType<typeof room.dispatch>>) =>
  outcomes.map(({ outcome, error }) => error?.code ?? outcome);

beforeEach(async () => {
  for (const name of await readdir(room.workspace)) {
    await rm(inside(name), { recursive: true, force: true });
  }
});

/** Everything below the workspace with its content. */
async function snapshot(): Promise<Record<string, string>> {
  const entries = await readdir(room.workspace, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Object.fromEntries(
    await Promise.all(
      files.map(async ({ parentPath, name }) => {
        const path = join(parentPath, name);
        return [path, await readFile(path, "utf8")] as const;
      }),
    ),
  );
}

describe("the shipped tools behind dispatch", () => {
  test("run in the class that their manifests declare", () => {
    const classes = room.table.entries().map(({ name, tool }) => [name, tool.concurrency]);
    expect(classes).toEqual([
      ["bash", "parallel"],
      ["edit", "parallel"],
      ["read", "parallel"],
      ["write", "parallel"],
    ]);
  });

  test("[T-013] [S-003] a call that was prepared and denied has touched nothing", async () => {
    await writeFile(inside("a.txt"), "old\n");
    const before = await snapshot();
    const judged: unknown[] = [];
    const outcomes = await room.dispatch(
      [
        ["write", { filePath: "new/deep/b.txt", content: "new" }],
        ["edit", { filePath: "a.txt", oldString: "old", newString: "new" }],
        ["read", { filePath: "a.txt" }],
        ["bash", { command: "touch c.txt" }],
      ],
      {
        gate: (request) => {
          judged.push(request.operation.resources.map(({ capability }) => capability));
          return Promise.resolve({
            granted: false,
            source: "user",
            reason: "user_rejected",
            feedback: null,
            escalated: false,
          });
        },
      },
    );
    expect(codes(outcomes)).toEqual(Array(4).fill("permission_denied"));
    expect(judged).toEqual([["write:write"], ["edit:write"], ["read:read"], ["bash:bash"]]);
    expect(await snapshot()).toEqual(before);
  });

  test("[T-015] [S-003] what changed after it was prepared is noticed by the call itself", async () => {
    await writeFile(inside("a.txt"), "old\n");
    const outcomes = await room.dispatch([["write", { filePath: "a.txt", content: "new\n" }]], {
      gate: async () => {
        await writeFile(inside("a.txt"), "someone else's\n");
        return { granted: true, source: "user", reason: "user_approved_once" };
      },
    });
    expect(codes(outcomes)).toEqual(["operation_changed"]);
    expect(await readFile(inside("a.txt"), "utf8")).toBe("someone else's\n");
  });

  test("[T-029] an edit never sees what a write of the same turn did", async () => {
    await writeFile(inside("a.txt"), "old\n");
    const outcomes = await room.dispatch([
      ["write", { filePath: "a.txt", content: "new\n" }],
      ["edit", { filePath: "a.txt", oldString: "new", newString: "newer" }],
      ["edit", { filePath: "a.txt", oldString: "old", newString: "older" }],
    ]);
    expect(codes(outcomes)).toEqual(["completed", "execution_failed", "operation_changed"]);
    expect(await readFile(inside("a.txt"), "utf8")).toBe("new\n");
  });

  test("[T-047] several lines over 2 MiB are refused with a limit that fits, whatever is shown of others", async () => {
    await writeFile(inside("large.txt"), `${"x".repeat(1023)}\n`.repeat(3000));
    const [whole] = await room.dispatch([["read", { filePath: "large.txt", limit: 3000 }]], {
      limits: { maxLines: 5, maxBytes: 100 },
    });
    expect(whole?.error?.code).toBe("resource_limit");
    const limit = Number(/limit (?:of |= ?|to )?(\d+)/.exec(whole?.error?.message ?? "")?.[1]);
    const [page] = await room.dispatch([["read", { filePath: "large.txt", limit }]]);
    expect(page).toMatchObject({ outcome: "completed", result: { retained_output: null } });
  });

  test("an opt-out page ignores the limits of retained output", async () => {
    await writeFile(inside("long.txt"), "line\n".repeat(1000));
    const [page] = await room.dispatch([["read", { filePath: "long.txt" }]], {
      limits: { maxLines: 2, maxBytes: 10, maxRetainedBytes: 10 },
    });
    expect(page).toMatchObject({ outcome: "completed", result: { retained_output: null } });
    expect(page?.result?.output).toContain("1000: line");
  });
});

describe("a directory link out of the workspace", () => {
  const allow = (...resources: string[]): PermissionRule[] =>
    (["read", "write"] as const).flatMap((action) => [
      { action, resource: "*", effect: "deny" as const },
      ...resources.map((resource) => ({ action, resource, effect: "allow" as const })),
    ]);
  const calls = [
    ["write", { filePath: "outbox/new/file.txt", content: "out" }],
    ["write", { filePath: "outbox/kept.txt", content: "out" }],
    ["edit", { filePath: "outbox/kept.txt", oldString: "kept", newString: "out" }],
    ["read", { filePath: "outbox/kept.txt" }],
    ["read", { filePath: "outbox" }],
  ] as const;

  beforeEach(async () => {
    const outside = join(room.root, "outside");
    await rm(outside, { recursive: true, force: true });
    await mkdir(outside);
    await writeFile(join(outside, "kept.txt"), "kept\n");
    await symlink(outside, inside("outbox"));
  });

  test.for([
    ["the name of the link alone", ["outbox", "outbox/*"]],
    ["the target alone", ["*/outside", "*/outside/*"]],
  ] as const)("[B025] a rule for %s opens nothing", async ([, patterns]) => {
    const outcomes = await room.dispatch(calls, { rules: allow(...patterns) });
    expect(codes(outcomes)).toEqual(Array(calls.length).fill("permission_denied"));
    expect(await readdir(join(room.root, "outside"))).toEqual(["kept.txt"]);
    expect(await readFile(join(room.root, "outside/kept.txt"), "utf8")).toBe("kept\n");
  });

  test("[B025] rules for both open it", async () => {
    const rules = allow("outbox", "outbox/*", "*/outside", "*/outside/*");
    for (const call of calls) {
      await writeFile(join(room.root, "outside/kept.txt"), "kept\n");
      expect(codes(await room.dispatch([call], { rules }))).toEqual(["completed"]);
    }
    expect(await readFile(join(room.root, "outside/new/file.txt"), "utf8")).toBe("out");
  });
});

describe("output that was kept", () => {
  test("[T-145] [S-107] is read by its URI and stream suffix, under a read rule for that URI", async () => {
    const [printed] = await room.dispatch([["bash", { command: "echo out; echo err >&2" }]]);
    const reference = printed?.result?.retained_output?.reference ?? "";
    const uri = `artifact://${reference.split("/").at(-1) ?? ""}`;
    const read = (rules: PermissionRule[]) =>
      room.dispatch(
        [
          ["read", { filePath: `${uri}/stdout` }],
          ["read", { filePath: `${uri}/stderr` }],
          ["read", { filePath: uri, stream: "stdout" }],
        ],
        { rules },
      );
    const open = await read(allowAll());
    expect(open.map(({ result }) => result?.output)).toEqual(["out\n", "err\n", undefined]);
    expect(open[2]?.error?.code).toBe("invalid_arguments");
    const ruled = await read([
      { action: "read", resource: "*", effect: "allow" },
      { action: "read", resource: "artifact://*/stderr", effect: "deny" },
    ]);
    expect(codes(ruled)).toEqual(["completed", "permission_denied", "invalid_arguments"]);
    expect(room.table.entries().map(({ name }) => name)).toEqual(["bash", "edit", "read", "write"]);
  });
});

describe("the kernel's own knowledge of tools", () => {
  test("[T-181] [E-201] no tool name of a shipped manifest is a literal in the kernel", async () => {
    const source = join(import.meta.dirname, "../../../../kernel/src");
    const names = room.table.entries().map(({ name }) => name);
    const actions = new Set(["read", "write", "bash"]);
    const found: string[] = [];
    for (const file of await readdir(source, { recursive: true })) {
      if (!file.endsWith(".ts")) continue;
      const text = await readFile(join(source, file), "utf8");
      for (const name of names) {
        // A name that is an action's too may stand wherever no tool or name is compared with it.
        const before = actions.has(name) ? "(?:tool|[nN]ame)\\s*(?:[!=]==|:)\\s*" : "";
        if (new RegExp(`${before}["'\`]${name}["'\`]`).test(text)) found.push(`${file}: ${name}`);
      }
    }
    expect(found).toEqual([]);
  });

  test("[T-181] [E-201] other first-party folders give other slots, contracts and reservations", async () => {
    const fixture = (name: string) => join(import.meta.dirname, "../../../fixtures/plugins", name);
    const { host } = await openHost({
      firstParty: await loadFirstParty([fixture("echo")]),
      entries: [entryFor("slow"), entryFor("wilful")],
    });
    const plugins = host.plugins();
    const table = (implementations: [string, string][] = []) =>
      buildSlotTable({
        plugins: [
          ...plugins,
          pluginFacts(
            "rival",
            [
              declareTool({ name: "echo", parameters: stringSchema("text") }),
              declareTool({
                name: "read",
                prepare: { mode: "static", resources: [{ action: "plugin", none: true }] },
              }),
            ],
            { tier: "untrusted" },
          ),
          pluginFacts(
            "misfit",
            [declareTool({ name: "store", parameters: stringSchema("other") })],
            {
              tier: "untrusted",
            },
          ),
        ],
        tools: { ...NO_SELECTION, implementations: new Map(implementations) },
      });
    const owners = (slots: ReturnType<typeof table>) =>
      Object.fromEntries(slots.entries().map(({ name, plugin }) => [name, plugin]));
    // A name of the shipped plugins is nothing special without them, one of these folders is reserved.
    expect(owners(table())).toMatchObject({
      echo: "echo",
      read: "rival",
      store: "echo",
      ask: "wilful",
    });
    expect(owners(table([["echo", "rival"]]))).toMatchObject({ echo: "rival" });
    expect(table([["store", "misfit"]]).unfit).toEqual([
      {
        plugin: "misfit",
        problem:
          "store cannot be served by plugin misfit: it does not require the argument text; it is unavailable",
      },
    ]);
  });

  test("[T-001] a tool whose parameters are no schema is not published, its neighbours are", async () => {
    const directory = await tempDirectory();
    const manifest = manifestOf({
      name: "broken",
      tools: [
        declareTool({
          name: "broken",
          parameters: { type: "object", required: "value" },
          prepare: { mode: "static", resources: [{ action: "plugin", none: true }] },
        }),
      ],
    });
    await writeFile(join(directory, "cookie-plugin.json"), JSON.stringify(manifest));
    const { host } = await openHost({
      entries: [entryFor("broken", { launch: { kind: "path", directory } }), entryFor("wilful")],
    });
    const table = buildSlotTable({ plugins: host.plugins(), tools: NO_SELECTION });
    expect(table.entries().map(({ name }) => name)).toEqual(["ask"]);
    expect(host.status()[0]).toMatchObject({
      state: "failed",
      reason: expect.stringMatching(/invalid_declaration.*tools\.broken\.parameters/) as string,
    });
  });
});
