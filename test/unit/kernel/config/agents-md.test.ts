import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readContextDocuments } from "../../../../kernel/src/config/agents-md.ts";
import { makePipe, makeScenario, writeFiles } from "./scenario.ts";

async function read(files: { user?: string; workspace?: string }, maxBytes = 100) {
  const { root, cwd } = await makeScenario();
  if (files.user !== undefined) await writeFiles(root, { "AGENTS.md": files.user });
  if (files.workspace !== undefined) await writeFiles(cwd, { "AGENTS.md": files.workspace });
  return readContextDocuments({ root, workspaceRoot: cwd, maxBytes });
}

test("missing and empty files are nothing", async () => {
  expect(await read({})).toEqual([]);
  expect(await read({ user: "" })).toEqual([]);
});

test("[C-246] both files are read, the user's first", async () => {
  expect(await read({ user: "mine", workspace: "ours é" })).toEqual([
    { source: "user", content: "mine", truncated: false, original_bytes: 4 },
    { source: "workspace", content: "ours é", truncated: false, original_bytes: 7 },
  ]);
});

test.for([
  ["aé🍪z", 8, "aé🍪z", false],
  ["aé🍪z", 7, "aé🍪", true],
  ["aé🍪z", 6, "aé", true],
  ["aé🍪z", 2, "a", true],
  ["🍪", 1, "", true],
] as const)(
  "[C-246] [C-004] %s in %i bytes is %j",
  async ([text, maxBytes, content, truncated]) => {
    expect(await read({ workspace: text }, maxBytes)).toEqual([
      { source: "workspace", content, truncated, original_bytes: Buffer.byteLength(text) },
    ]);
  },
);

test("a link is followed, for this is only text", async () => {
  const { root, cwd } = await makeScenario();
  await writeFiles(cwd, { "NOTES.md": "linked" });
  await symlink("NOTES.md", join(cwd, "AGENTS.md"));
  expect(await readContextDocuments({ root, workspaceRoot: cwd, maxBytes: 9 })).toMatchObject([
    { content: "linked" },
  ]);
});

test.for(["../secret.md", ".env", "/proc/self/environ"])(
  "a workspace's link to %s is not read unasked",
  async (target) => {
    const { root, cwd } = await makeScenario();
    await writeFiles(cwd, { "../secret.md": "secret", ".env": "secret" });
    await symlink(target, join(cwd, "AGENTS.md"));
    const diagnostics: string[] = [];
    const onDiagnostic = (text: string) => diagnostics.push(text);
    const options = { root, workspaceRoot: cwd, maxBytes: 9, onDiagnostic };
    expect(await readContextDocuments(options)).toEqual([]);
    expect(diagnostics).toEqual([
      `${join(cwd, "AGENTS.md")} is a link to something other than a .md file of the workspace`,
    ]);
  },
);

test("the user's own link may lead anywhere", async () => {
  const { root, cwd } = await makeScenario();
  await writeFiles(cwd, { "../notes.txt": "linked" });
  await writeFiles(root, { "config.toml": "" });
  await symlink(join(cwd, "../notes.txt"), join(root, "AGENTS.md"));
  expect(await readContextDocuments({ root, workspaceRoot: cwd, maxBytes: 9 })).toMatchObject([
    { content: "linked" },
  ]);
});

test("what is no regular file is a diagnostic and does not block", async () => {
  const { root, cwd } = await makeScenario();
  await mkdir(join(root, "AGENTS.md"), { recursive: true });
  makePipe(join(cwd, "AGENTS.md"));
  const diagnostics: string[] = [];
  const onDiagnostic = (text: string) => diagnostics.push(text);
  const options = { root, workspaceRoot: cwd, maxBytes: 9, onDiagnostic };
  expect(await readContextDocuments(options)).toEqual([]);
  expect(diagnostics).toEqual([
    `${join(root, "AGENTS.md")} is not a regular file`,
    `${join(cwd, "AGENTS.md")} is not a regular file`,
  ]);
});
