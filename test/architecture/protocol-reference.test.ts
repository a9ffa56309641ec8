import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as protocol from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { protocolPages, REFERENCE_DIRECTORY } from "../reference/protocol-pages.ts";

const pages = protocolPages();
const everything = [...pages.values()].join("\n");

describe("the reference of the extension protocol", () => {
  test("the folder holds the written pages and nothing else; `npm run reference` writes them", () => {
    expect(readdirSync(REFERENCE_DIRECTORY).sort()).toEqual([...pages.keys()].sort());
  });

  test.for([...pages])(
    "%s says what the schemas say; `npm run reference` writes it",
    ([file, text]) => {
      expect(readFileSync(join(REFERENCE_DIRECTORY, file), "utf8")).toBe(text);
    },
  );

  test("it comes out the same again", () => {
    expect([...protocolPages()]).toEqual([...pages]);
  });

  test("every message of plugins, every event and every error code has its place", () => {
    const headings = [
      ...pathsOf(Object.values(protocol)),
      ...Object.keys(protocol.EVENT_PAYLOADS),
    ].map((name) => `## \`${name}\``);
    expect(headings.filter((heading) => !everything.includes(`\n${heading}\n`))).toEqual([]);
    const errors = pages.get("errors.md") ?? "";
    const codes = Object.keys(protocol.ERROR_NUMBERS);
    expect(codes.filter((code) => !errors.includes(`| \`${code}\` |`))).toEqual([]);
  });

  test("every member of the manifest has its row", () => {
    const manifest = pages.get("manifest.md") ?? "";
    const members = Object.keys(protocol.Manifest.shape);
    expect(
      members.filter((name) => !new RegExp(`^\\| \`${name}\\??\` \\|`, "m").test(manifest)),
    ).toEqual([]);
  });

  test("every link leads to a heading or a file that is there", () => {
    const broken = [...pages].flatMap(([file, text]) =>
      [...text.replace(/ `[^`]+`/g, "").matchAll(/\]\(([^)\s]*)\)/g)].flatMap(([, target = ""]) => {
        const [path = "", anchor] = target.split("#");
        const other = pages.get(path === "" ? file : path);
        if (other === undefined) return existsSync(join(REFERENCE_DIRECTORY, path)) ? [] : [target];
        return anchor === undefined || anchorsOf(other).includes(anchor)
          ? []
          : [`${file}: ${target}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  test("no heading stands twice on a page", () => {
    for (const text of pages.values()) {
      const anchors = anchorsOf(text);
      expect(anchors.filter((anchor, index) => anchors.indexOf(anchor) !== index)).toEqual([]);
    }
  });
});

/** Wire names with a slash: those of plugins and hosts, also where a record holds them. */
function pathsOf(values: readonly unknown[]): string[] {
  return values.flatMap((value) => {
    if (typeof value !== "object" || value === null) return [];
    if (!("params" in value)) return pathsOf(Object.values(value).filter(isDeclaration));
    return "name" in value && typeof value.name === "string" && value.name.includes("/")
      ? [value.name]
      : [];
  });
}

function isDeclaration(value: unknown): boolean {
  return typeof value === "object" && value !== null && "params" in value;
}

/** As GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^a-z0-9_ -]/g, "")
      .replaceAll(" ", "-"),
  );
}
