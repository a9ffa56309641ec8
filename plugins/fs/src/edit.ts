import { createHash } from "node:crypto";
import { defineTool, ToolError } from "@cookie-agent/sdk/plugin";
import * as z from "zod";
import { cutText } from "./cut-text.ts";
import { respellingNote } from "./equal-name.ts";
import { readContent } from "./file-content.ts";
import type { LocatedTarget } from "./locate-target.ts";
import { findText, type MatchResult, replaceBreaks, type TextMatch } from "./match-text.ts";
import {
  holding,
  pathResources,
  preparePath,
  primaryArgument,
  resultTitle,
} from "./prepare-path.ts";
import { type PreparedFile, publishFile } from "./publish-file.ts";
import { refuseArtifact } from "./refuse-artifact.ts";
import {
  requireFile,
  revalidateTarget,
  sameFile,
  serializationKey,
  targetChanged,
} from "./target-identity.ts";
import { expectWellFormed } from "./well-formed.ts";

const MAX_FILE_BYTES = 256 * 1024 * 1024;
const MAX_DETAIL_BYTES = 12 * 1024;

const parameters = z.strictObject({
  filePath: z.string().describe("File to edit; relative to the workspace root"),
  oldString: z
    .string()
    .describe("Text to replace, which must occur exactly once; empty creates a new file"),
  newString: z.string().describe("Text to put in its place"),
});

/** The replacement as computed during preparation. */
interface Replacement {
  readonly match: TextMatch;
  readonly bytes: Buffer;
}

/** An edit between its preparation and its call; without a replacement it creates a file. */
interface PreparedEdit extends PreparedFile {
  readonly replacement: Replacement | null;
  release(): void;
}

export const edit = defineTool({
  description: `Replaces one piece of text in a file.

- oldString must match the file exactly, whitespace included and without the line numbers that read shows, and occur exactly once: give enough surrounding lines to make it unique.
- newString is inserted literally. Line breaks keep the file's own endings.
- An empty oldString creates filePath with newString; the file must not exist.
- Calls of one turn are prepared together: make one edit per file and turn.`,
  parameters,
  permissionName: "write",
  displayArgument: "filePath",
  concurrency: "parallel",
  timeoutMs: 300_000,
  prepare: {
    mode: "dynamic",
    actions: ["write"],
    run: async (request) => {
      const { filePath, oldString, newString } = request.args;
      refuseArtifact(filePath);
      expectWellFormed("oldString", oldString);
      expectWellFormed("newString", newString);
      if (oldString !== "" && oldString === newString) throw noChange("they are equal");
      const prepared = preparePath(filePath, request);
      const { target } = prepared;
      return holding(prepared, async () => {
        const found = await findReplacement(target, oldString, newString, request.signal);
        const state: PreparedEdit = { target, ...found, release: () => prepared.release() };
        return {
          resources: pathResources("write", target, request),
          serialize: [serializationKey(target)],
          state,
          release: () => prepared.release(),
          primaryArgument: primaryArgument(target, request),
          detail: `${marked("-", oldString)}${marked("+", newString)}`,
        };
      });
    },
  },
  call: async ({ args, state, signal }) => {
    if (state === undefined) {
      throw new ToolError("prepared_capability_lost", "edit was not prepared; prepare it again");
    }
    try {
      const target = revalidateTarget(state.target, sameFile);
      const { replacement } = state;
      const parts =
        replacement === null
          ? [Buffer.from(args.newString, "utf8")]
          : await replaceIn(target, state.sha256, replacement, signal);
      const { cleanupWarning } = await publishFile(state, parts, signal);
      const note = respellingNote(target.respelled);
      const done =
        replacement === null ? `Created ${target.path}.` : `Edited ${target.path} (1 replacement).`;
      return {
        content: note === "" ? done : `${done}\n${note}`,
        title: resultTitle(`${replacement === null ? "Created" : "Edited"} ${target.path}`),
        metadata: { new_sha256: digestOf(parts), cleanup_warning: cleanupWarning },
      };
    } finally {
      state.release();
    }
  },
});

async function findReplacement(
  target: LocatedTarget,
  oldString: string,
  newString: string,
  signal: AbortSignal,
): Promise<Pick<PreparedEdit, "sha256" | "replacement">> {
  const { leaf, path } = target;
  if (leaf === null) {
    if (oldString === "") return { sha256: null, replacement: null };
    throw failed("file_missing", `${path} does not exist; an empty oldString creates it`);
  }
  requireFile(path, leaf);
  if (oldString === "") {
    throw failed("file_exists", `${path} exists already; give the text to replace in oldString`);
  }
  if (leaf.size > MAX_FILE_BYTES) {
    throw new ToolError("resource_limit", `${path} is larger than 256 MiB, too large to edit`);
  }
  const { bytes, sha256 } = await readContent(target, signal);
  const match = uniqueMatch(path, findText(bytes, oldString));
  const replacement = { match, bytes: replaceBreaks(bytes, match, newString) };
  if (replacement.bytes.equals(bytes.subarray(match.start, match.end))) {
    throw noChange("they differ only in line endings, and an edit keeps those of the file");
  }
  return { sha256, replacement };
}

function uniqueMatch(path: string, { count, lines, first }: MatchResult): TextMatch {
  if (first === undefined) {
    throw failed(
      "no_match",
      `oldString was not found in ${path}; it must match the file exactly, whitespace included`,
    );
  }
  if (count === 1) return first;
  const more = count > lines.length ? ", …" : "";
  throw failed(
    "ambiguous",
    `oldString occurs ${count} times in ${path}, at lines ${lines.join(", ")}${more}; give more surrounding text`,
    { count, lines },
  );
}

/** The whole new content, with everything outside the match as it is in the file now. */
async function replaceIn(
  target: LocatedTarget,
  sha256: string | null,
  { match, bytes }: Replacement,
  signal: AbortSignal,
): Promise<Buffer[]> {
  const content = await readContent(target, signal);
  if (content.sha256 !== sha256) throw targetChanged(target.path);
  return [content.bytes.subarray(0, match.start), bytes, content.bytes.subarray(match.end)];
}

function digestOf(parts: readonly Buffer[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** Lines with a leading sign, as an approval shows them. */
function marked(sign: string, text: string): string {
  if (text === "") return "";
  const lines = cutText(text, MAX_DETAIL_BYTES)
    .replace(/\r?\n$/, "")
    .split(/\r?\n/);
  return lines.map((line) => `${sign}${line}\n`).join("");
}

function noChange(why: string): ToolError {
  return new ToolError("invalid_arguments", `oldString and newString make no change: ${why}`, {
    data: { reason: "no_change" },
  });
}

function failed(reason: string, message: string, facts: Record<string, unknown> = {}): ToolError {
  return new ToolError("execution_failed", message, { data: { reason, ...facts } });
}
