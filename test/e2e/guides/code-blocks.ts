import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface CodeBlock {
  /** What stands behind the opening fence. */
  readonly language: string;
  /** The last line of text before the block. */
  readonly leadIn: string;
  readonly text: string;
}

const REPOSITORY = join(import.meta.dirname, "../../..");

/** The fenced blocks of a document of the repository, below the given heading or of all of it. */
export function codeBlocks(document: string, heading?: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let section = "";
  let leadIn = "";
  let open: { language: string; lines: string[] } | null = null;
  for (const line of readFileSync(join(REPOSITORY, document), "utf8").split("\n")) {
    const fence = /^```(\w*)$/.exec(line);
    if (open !== null) {
      if (fence === null) {
        open.lines.push(line);
        continue;
      }
      const { language, lines } = open;
      if (heading === undefined || heading === section) {
        blocks.push({ language, leadIn, text: `${lines.join("\n")}\n` });
      }
      open = null;
    } else if (fence !== null) open = { language: fence[1] ?? "", lines: [] };
    else {
      section = /^#+ (.*)$/.exec(line)?.[1] ?? section;
      if (line.trim() !== "") leadIn = line;
    }
  }
  return blocks;
}
