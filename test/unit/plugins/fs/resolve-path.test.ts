import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { displayPath, relativeLabel } from "../../../../plugins/fs/src/path-label.ts";
import { resolvePath } from "../../../../plugins/fs/src/resolve-path.ts";

const base = { cwd: "/srv/app", homeDir: "/home/ada" };

describe("a path argument", () => {
  test.for([
    ["src/a.ts", "/srv/app/src/a.ts"],
    ["./src/./a.ts", "/srv/app/src/a.ts"],
    ["src/../b", "/srv/app/b"],
    ["../other", "/srv/other"],
    ["/etc//hosts", "/etc/hosts"],
    ["dir/", "/srv/app/dir"],
    [".", "/srv/app"],
    ["~", "/home/ada"],
    ["~/notes", "/home/ada/notes"],
    ["~///notes", "/home/ada/notes"],
    ["./~x", "/srv/app/~x"],
    ["a/~/b", "/srv/app/a/~/b"],
  ] as const)("[T-050] %s resolves to %s", ([argument, path]) => {
    expect(resolvePath(argument, base)).toBe(path);
  });

  test.for([
    ["../../..", "unsupported_security"],
    ["/..", "unsupported_security"],
    ["/", "unsupported_security"],
    ["/a/..", "unsupported_security"],
    ["", "invalid_arguments"],
    ["a\0b", "invalid_arguments"],
    ["a\nb", "invalid_arguments"],
    ["~root/x", "invalid_arguments"],
    ["\ud800", "invalid_arguments"],
  ] as const)("[T-050] %j is refused with %s", ([argument, code]) => {
    expect(() => resolvePath(argument, base)).toThrow(expect.objectContaining({ code }));
  });

  test("[T-050] home is not expanded when it is not absolute", () => {
    expect(() => resolvePath("~/a", { cwd: "/srv", homeDir: "" })).toThrow(/no home directory/);
  });

  test("[T-050] a resolved path is absolute, without dots, and resolves to itself", () => {
    const part = fc.constantFrom("a", "b", ".", "..", "", "~");
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 12 }), (parts) => {
        let path: string;
        try {
          path = resolvePath(`deep/er/${parts.join("/")}`, { ...base, cwd: "/1/2/3/4/5/6/7/8" });
        } catch {
          return;
        }
        expect(path).toMatch(/^(?:\/[^/]+)+$/);
        expect(path.split("/")).not.toContain("..");
        expect(resolvePath(path, base)).toBe(path);
      }),
    );
  });
});

test.for([
  ["/srv/app/src/a.ts", "src/a.ts", "src/a.ts"],
  ["/srv/app", ".", "."],
  ["/srv/application/a", "/srv/application/a", "/srv/application/a"],
  ["/home/ada/n", "/home/ada/n", "~/n"],
  ["/etc/hosts", "/etc/hosts", "/etc/hosts"],
] as const)("[T-052] %s has the label %s and is shown as %s", ([path, label, shown]) => {
  expect(relativeLabel(path, "/srv/app")).toBe(label);
  expect(displayPath(path, "/srv/app", "/home/ada")).toBe(shown);
});
