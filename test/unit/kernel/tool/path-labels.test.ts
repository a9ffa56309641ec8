import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { pathLabels } from "../../../../kernel/src/tool/path-labels.ts";

const base = await realpath(await mkdtemp(join(tmpdir(), "cookie-paths-")));
afterAll(() => rm(base, { recursive: true, force: true }));
const workspaceRoot = join(base, "work");
await mkdir(join(workspaceRoot, "src"), { recursive: true });
await mkdir(join(base, "outside"));
await writeFile(join(base, "outside", "secret"), "");
await writeFile(join(workspaceRoot, "src", "a.ts"), "");
await symlink(join(base, "outside"), join(workspaceRoot, "out"));
await symlink("src", join(workspaceRoot, "alias"));
await symlink("nowhere", join(workspaceRoot, "dangling"));
await symlink("circle", join(workspaceRoot, "circle"));

const labels = (path: string) => pathLabels(path, { cwd: workspaceRoot, workspaceRoot });
const HEX = "0".repeat(64);

describe("labels of a path argument", () => {
  test.for([
    ["src/a.ts", ["src/a.ts"]],
    ["./src/../src/./a.ts", ["src/a.ts"]],
    [".", ["."]],
    ["new/dir/file", ["new/dir/file"]],
    [`${workspaceRoot}/src/a.ts`, ["src/a.ts"]],
    ["../outside/secret", [join(base, "outside", "secret")]],
    ["..notes", ["..notes"]],
    ["./~x", ["~x"]],
    [`artifact://${HEX}/stdout`, [`artifact://${HEX}/stdout`]],
  ] as const)("[S-158] %s is labelled %j", async ([path, expected]) => {
    await expect(labels(path)).resolves.toEqual(expected);
  });

  test.for([
    ["out/secret", ["out/secret", join(base, "outside", "secret")]],
    ["out/new/file", ["out/new/file", join(base, "outside", "new", "file")]],
    ["alias/a.ts", ["alias/a.ts", "src/a.ts"]],
  ] as const)(
    "[S-158] %s goes through a link, so its target is a label too",
    async ([path, expected]) => {
      await expect(labels(path)).resolves.toEqual(expected);
    },
  );

  test("the home directory is expanded lexically", async () => {
    const [lexical] = await labels("~//x-does-not-exist");
    expect(lexical).toBe(join(homedir(), "x-does-not-exist"));
  });

  test.for([
    ["dangling", "execution_failed"],
    ["circle/x", "execution_failed"],
    ["", "execution_failed"],
    ["a\0b", "execution_failed"],
    ["~root/x", "execution_failed"],
    ["/", "unsupported_security"],
    ["/../x", "unsupported_security"],
    [`${"../".repeat(40)}x`, "unsupported_security"],
  ] as const)("%j is refused with %s", async ([path, code]) => {
    await expect(labels(path)).rejects.toMatchObject({ code });
  });
});
