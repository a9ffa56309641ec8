import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pythonTemplate } from "../../cli/src/plugin/templates/python-template.ts";
import { shellTemplate } from "../../cli/src/plugin/templates/shell-template.ts";
import type { Template } from "../../cli/src/plugin/templates/template-file.ts";
import { codeBlocks } from "../e2e/guides/code-blocks.ts";

const EXAMPLES = join(import.meta.dirname, "../../docs/examples");
const example = (file: string) => readFileSync(join(EXAMPLES, file), "utf8");
const SHEET = "docs/spec/extension-protocol.md";

/** What differs between plugins of one kind: who they are, and what their tool does. */
function loopOf(program: string, first: string): string {
  const start = program.indexOf(first);
  expect(start).toBeGreaterThanOrEqual(0);
  return program
    .slice(start)
    .trim()
    .replace(/("name": ?)"\w+"(, ?"version": ?)"[\d.]+"/, '$1"NAME"$2"VERSION"')
    .replace(/plugin\/tools\/call\)[\s\S]*?;;\n/, "plugin/tools/call) CALL ;;\n");
}

function programOf({ files }: Template): string {
  return files.find(({ executable }) => executable === true)?.text ?? "";
}

function blockOf(document: string, language: string): string {
  return codeBlocks(document).find((block) => block.language === language)?.text ?? "";
}

test("[E-180] the Python template and the Python example speak the protocol in the same lines", () => {
  const template = programOf(pythonTemplate("word_count"));
  const first = "for line in sys.stdin:";
  expect(loopOf(template, first)).toBe(loopOf(example("python-tool/main.py"), first));
});

test("[E-180] the shell template, the shell example and the sheet speak it in the same lines", () => {
  const first = "while IFS= read -r line";
  const template = loopOf(programOf(shellTemplate("word_count")), first);
  expect(template).toContain("CALL");
  expect(loopOf(example("shell-tool/main.sh"), first)).toBe(template);
  expect(loopOf(blockOf(SHEET, "sh"), first)).toBe(template);
});

test("[E-180] the first plugin in Python is the one of the sheet", () => {
  const first = "def reply(";
  const guide = blockOf("docs/guides/your-first-plugin.md", "python");
  expect(loopOf(guide, first)).toBe(loopOf(blockOf(SHEET, "python"), first));
});
