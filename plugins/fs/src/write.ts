import { defineTool, ToolError } from "@cookie-agent/sdk/plugin";
import * as z from "zod";
import { cutText } from "./cut-text.ts";
import { respellingNote } from "./equal-name.ts";
import { scanContent } from "./file-content.ts";
import {
  holding,
  pathResources,
  preparePath,
  primaryArgument,
  resultTitle,
} from "./prepare-path.ts";
import { type PreparedFile, publishFile } from "./publish-file.ts";
import { refuseArtifact } from "./refuse-artifact.ts";
import { requireFile, revalidateTarget, sameFile, serializationKey } from "./target-identity.ts";
import { BOM } from "./text-scan.ts";
import { expectWellFormed } from "./well-formed.ts";

const MAX_DETAIL_BYTES = 32 * 1024;

const parameters = z.strictObject({
  filePath: z.string().describe("File to write; relative to the workspace root"),
  content: z.string().describe("The complete new content"),
});

/** A write between its preparation and its call. */
interface PreparedWrite extends PreparedFile {
  /** The replaced file begins with a byte order mark, which stays. */
  readonly hasBom: boolean;
  release(): void;
}

export const write = defineTool({
  description: `Creates a file or replaces all of its content, as UTF-8.

- Missing parent folders are created. An existing file keeps its permissions and byte order mark.
- To change a part of a file use edit.
- Calls of one turn are prepared together: do not write and edit the same file in one turn.`,
  parameters,
  permissionName: "write",
  displayArgument: "filePath",
  concurrency: "parallel",
  timeoutMs: 300_000,
  prepare: {
    mode: "dynamic",
    actions: ["write"],
    run: async (request) => {
      const { filePath, content } = request.args;
      refuseArtifact(filePath);
      expectWellFormed("content", content);
      const prepared = preparePath(filePath, request);
      const { target } = prepared;
      return holding(prepared, async () => {
        const { leaf, path } = target;
        if (leaf !== null) requireFile(path, leaf);
        const facts = leaf === null ? null : await scanContent(target, request.signal);
        const state: PreparedWrite = {
          target,
          sha256: facts?.sha256 ?? null,
          hasBom: facts?.hasBom ?? false,
          release: () => prepared.release(),
        };
        return {
          resources: pathResources("write", target, request),
          serialize: [serializationKey(target)],
          state,
          release: () => prepared.release(),
          primaryArgument: primaryArgument(target, request),
          detail: cutText(content, MAX_DETAIL_BYTES),
        };
      });
    },
  },
  call: async ({ args, state, signal }) => {
    if (state === undefined) {
      throw new ToolError("prepared_capability_lost", "write was not prepared; prepare it again");
    }
    try {
      const { target } = state;
      revalidateTarget(target, sameFile);
      const parts = contentParts(args.content, state.hasBom);
      const { cleanupWarning } = await publishFile(state, parts, signal);
      const bytes = parts.reduce((sum, part) => sum + part.length, 0);
      const note = respellingNote(target.respelled);
      return {
        content: `Wrote ${bytes} bytes to ${target.path}${note === "" ? "" : `\n${note}`}`,
        title: resultTitle(`Wrote ${target.path}`),
        metadata: { bytes, cleanup_warning: cleanupWarning },
      };
    } finally {
      state.release();
    }
  },
});

function contentParts(content: string, keepBom: boolean): Buffer[] {
  const bytes = Buffer.from(content, "utf8");
  return keepBom && !bytes.subarray(0, BOM.length).equals(BOM) ? [BOM, bytes] : [bytes];
}
