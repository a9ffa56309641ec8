import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const repository = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(repository, file), "utf8");

const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "AGENTS.md",
  "SECURITY.md",
  "docs/architecture/internal-agents.md",
  "docs/architecture/tool-call.md",
  "docs/daemon.md",
  "docs/examples/README.md",
  "docs/examples/guard/README.md",
  "docs/examples/observer/README.md",
  "docs/examples/python-tool/README.md",
  "docs/examples/restricted-bash/README.md",
  "docs/examples/shell-tool/README.md",
  "docs/examples/stream-and-cancel/README.md",
  "docs/guides/authoring-plugins.md",
  "docs/guides/migrating.md",
  "docs/guides/your-first-plugin.md",
  "docs/reference/platforms.md",
  "docs/usage.md",
];

test("the walk through one tool call names files that exist, each under the folder it is listed in", () => {
  const [, map = ""] = /```\n([^`]+)```/.exec(read("docs/architecture/tool-call.md")) ?? [];
  const files = map
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => line.trim().split(/\s+/)[0] ?? "");
  expect(files.length).toBeGreaterThan(15);
  expect(files.filter((file) => !existsSync(join(repository, file)))).toEqual([]);
});

test.for(DOCUMENTS)("%s names only files and links that exist", (document) => {
  const text = read(document).replace(/```[\s\S]*?```/g, "");
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path = ""]) =>
    join(dirname(document), path),
  );
  const named = [...text.matchAll(/`((?:cli|docs|kernel|plugins|sdk|test)\/[\w./-]*)`/g)].map(
    ([, path = ""]) => path,
  );
  expect([...links, ...named].filter((path) => !isThere(path))).toEqual([]);
});

/** A path of the repository, or an entry of the SDK as imports name it. */
function isThere(path: string): boolean {
  return [path, path.replace(/^sdk\//, "sdk/src/")].some((file) =>
    existsSync(join(repository, file)),
  );
}

test("the platform list holds every requirement marked for a platform", () => {
  const marked = ["sessions.md", "tools.md", "config-models.md", "extension-protocol.md"]
    .flatMap((sheet) => read(`docs/spec/${sheet}`).split("\n"))
    .filter((line) => /\(platform\)|: platform\)/.test(line))
    .flatMap((line) => /^(?:- \**|\| )([TESCD]-\d{3})\b/.exec(line)?.[1] ?? []);
  const listed = read("docs/reference/platforms.md");
  expect(marked.length).toBeGreaterThan(0);
  expect(marked.filter((id) => !listed.includes(id))).toEqual([]);
});
