import { closeSync, fstatSync } from "node:fs";
import {
  defineTool,
  type ToolAnswer,
  ToolError,
  type ToolInvocation,
} from "@cookie-agent/sdk/plugin";
import * as z from "zod";
import { attachIfMedia } from "./attach-file.ts";
import { respellingNote } from "./equal-name.ts";
import { holdFolder } from "./held-folder.ts";
import { listFolder } from "./list-folder.ts";
import {
  holding,
  type PreparedPath,
  pathResources,
  preparePath,
  primaryArgument,
  resultTitle,
} from "./prepare-path.ts";
import { readChunks } from "./read-chunks.ts";
import { readPage } from "./read-page.ts";
import { ARTIFACT_SCHEME } from "./refuse-artifact.ts";
import {
  checkObjectType,
  openTarget,
  revalidateTarget,
  sameSnapshot,
  targetChanged,
} from "./target-identity.ts";

const DEFAULT_LIMIT = 2000;
const MAX_ARTIFACT_LIMIT = 2000;
const MAX_URI_BYTES = 1024;
const CONTROL = /\p{Cc}/u;

const parameters = z.strictObject({
  filePath: z.string().describe("File, folder or artifact:// URI; relative to the workspace root"),
  offset: z.int().min(0).nullish().describe("Zero-based first line or entry; default 0"),
  byte: z
    .int()
    .min(0)
    .nullish()
    .describe("Start inside the first line, in bytes; only to go on from a returned next_byte"),
  limit: z.int().min(1).nullish().describe("Number of lines or entries; default 2000"),
});

type ReadArgs = z.output<typeof parameters>;
type Invocation = ToolInvocation<ReadArgs, PreparedPath>;

export const read = defineTool({
  description: `Reads a text file, a folder, an image or PDF, or an artifact.

- A file comes back as numbered lines ("1: first line"); the numbers are not part of the file.
- A folder comes back as its entries, subfolders with a trailing "/".
- A page has at most "limit" lines. When more follows, metadata.next_offset (and next_byte inside a very long line) say where to go on.
- artifact:// URIs from truncated output return the stored text without line numbers.
- Images, PDFs and other media are attached where the model takes them. Other files must be UTF-8 text; the error names what they are.`,
  parameters,
  permissionName: "read",
  displayArgument: "filePath",
  concurrency: "parallel",
  resultTruncation: "opt_out",
  timeoutMs: 300_000,
  prepare: {
    mode: "dynamic",
    actions: ["read"],
    run: async (request) => {
      const { filePath } = request.args;
      const page = pageOf(request.args);
      const args = { filePath, ...page };
      if (filePath.startsWith(ARTIFACT_SCHEME)) {
        checkUri(filePath);
        return {
          resources: [{ action: "read", label: filePath, lifetime: "restart_stable" }],
          arguments: args,
          primaryArgument: filePath + givenPage(request.args),
        };
      }
      const prepared = preparePath(filePath, request);
      return holding(prepared, () => {
        const { target } = prepared;
        if (target.leaf === null) {
          throw new ToolError("execution_failed", `${target.path} does not exist`);
        }
        checkObjectType(target.path, target.leaf);
        return {
          resources: pathResources("read", target, request),
          arguments: args,
          state: prepared,
          release: () => prepared.release(),
          primaryArgument: primaryArgument(target, request, givenPage(request.args)),
        };
      });
    },
  },
  call: async (invocation: Invocation) => {
    if (invocation.args.filePath.startsWith(ARTIFACT_SCHEME)) return readArtifact(invocation);
    const prepared = invocation.state;
    if (prepared === undefined) {
      throw new ToolError("prepared_capability_lost", "read was not prepared; prepare it again");
    }
    try {
      return await readPath(prepared, invocation);
    } finally {
      prepared.release();
    }
  },
});

async function readPath(
  { target: prepared }: PreparedPath,
  invocation: Invocation,
): Promise<ToolAnswer> {
  const { args, signal } = invocation;
  const target = revalidateTarget(prepared, sameSnapshot);
  const { offset, byte, limit } = pageOf(args);
  const note = respellingNote(target.respelled);
  const tail = note === "" ? "" : `\n${note}`;
  if (target.leaf?.isDirectory()) {
    const folder = holdFolder(target.canonical, target.leaf);
    if (folder === undefined) throw targetChanged(target.path);
    const page = await listFolder(folder, offset, limit).finally(() => folder.close());
    const empty = page.totalEntries === 0 ? "\n(empty directory)" : "";
    return {
      content: `<path>${target.path}</path>\n<type>directory</type>\n<entries>\n${page.text}</entries>${empty}${tail}`,
      title: resultTitle(`Read directory ${target.path}`),
      metadata: { kind: "directory", shown: page.shown, total_entries: page.totalEntries },
    };
  }
  const fd = openTarget(target, sameSnapshot);
  try {
    const size = Number(target.leaf?.size ?? 0n);
    const attached = await attachIfMedia({ fd, path: target.path, size }, invocation);
    if (attached !== undefined) return attached;
    const chunks = readChunks(fd, target.path, signal, size);
    const page = await readPage(chunks, target.path, { offset, byte, limit });
    // What was cut off while it was read would look like the end of the file.
    if (fstatSync(fd).size < size) throw targetChanged(target.path);
    const empty = page.totalLines === 0 ? "\n(empty file)" : "";
    return {
      content: `<path>${target.path}</path>\n<type>file</type>\n<content>\n${page.text}</content>${empty}${tail}`,
      title: resultTitle(`Read file ${target.path}`),
      metadata: {
        kind: "text",
        offset,
        limit,
        total_lines: page.totalLines,
        next_offset: page.nextOffset,
        next_byte: page.nextByte,
      },
    };
  } finally {
    closeSync(fd);
  }
}

/** The kernel owns artifacts: their grammar, their integrity and their pages (T-060). */
async function readArtifact({ args, host }: Invocation) {
  const { filePath } = args;
  const { offset, byte, limit } = pageOf(args);
  const page = await host.readArtifact({ uri: filePath, offset, byte, limit });
  return {
    content: page.text,
    title: "Artifact page",
    metadata: {
      filePath,
      offset,
      limit,
      next_offset: page.next_offset,
      next_byte: page.next_byte,
      source: page.source,
    },
  };
}

function pageOf({ filePath, offset, byte, limit }: ReadArgs) {
  const wanted = limit ?? DEFAULT_LIMIT;
  return {
    offset: offset ?? 0,
    byte: byte ?? 0,
    limit: filePath.startsWith(ARTIFACT_SCHEME) ? Math.min(wanted, MAX_ARTIFACT_LIMIT) : wanted,
  };
}

/** The page as the call gave it, for display. */
function givenPage({ offset, byte, limit }: ReadArgs): string {
  const given = Object.entries({ offset, byte, limit })
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${value}`);
  return given.length === 0 ? "" : ` [${given.join(", ")}]`;
}

/** A URI that cannot even be a label; the rest of the grammar is the kernel's to check. */
function checkUri(uri: string): void {
  if (Buffer.byteLength(uri) <= MAX_URI_BYTES && !CONTROL.test(uri)) return;
  throw new ToolError("artifact_uri", "the artifact URI is too long or holds control characters");
}
