import { isAbsolute, join } from "node:path";
import { isCookieError, type RehydratedFile } from "@cookie-agent/sdk/protocol";
import { ARTIFACT_SCHEME } from "../artifact/artifact-uri.ts";
import { readBoundedFile } from "../config/read-bounded-file.ts";
import type { HistoryMessage } from "../model/bound-model.ts";
import type { Policy } from "../permission/compile-rules.ts";
import { evaluatePolicy } from "../permission/evaluate-policy.ts";
import { sha256Hex } from "../support/digest.ts";
import { cutUtf8Bytes } from "../support/safe-text.ts";
import { pathLabels } from "../tool/path-labels.ts";
import type { BoundTool, ToolSet } from "../tool/tool-slots.ts";

const MAX_FILES = 5;
const MAX_FILE_BYTES = 32 * 1024;
const MAX_ALL_BYTES = 128 * 1024;
/** A smaller piece of a file tells nothing. */
const MIN_PIECE_BYTES = 256;
/** Paths that are looked at for the files that may come back. */
const MAX_CANDIDATES = 64;

export interface RehydrationPlace {
  /** Absolute and canonical. */
  readonly cwd: string;
  readonly workspaceRoot: string;
  /** The rules in force now. */
  readonly policy: Policy;
}

/** Paths that calls have opened for reading, in the order of the calls; no tool is known here but by its declaration. */
export function openedPaths(
  messages: readonly HistoryMessage[],
  tools: Pick<ToolSet, "get">,
): string[] {
  return messages.flatMap((message, index) => {
    if (message.role !== "assistant") return [];
    const answers = messages[index + 1];
    if (answers?.role !== "tool") return [];
    const failed = new Set(answers.results.flatMap((each) => (each.isError ? [each.callId] : [])));
    return message.content.flatMap((part) => {
      if (part.type !== "tool_call" || failed.has(part.id)) return [];
      const path = pathOf(tools.get(part.name), part.input);
      return path === undefined || path.startsWith(ARTIFACT_SCHEME) ? [] : [path];
    });
  });
}

/**
 * The files that were opened last, as they are now, oldest opening first: only what the rules allow without asking, by
 * every label that the path has, so that no link leads around a rule (S-222).
 * @param opened In the order of opening; a path may come several times.
 * @param visible What the kept messages still show.
 */
export async function rehydrateFiles(
  opened: readonly string[],
  visible: readonly string[],
  place: RehydrationPlace,
  roomBytes: number,
): Promise<RehydratedFile[]> {
  const seen = new Set<string>();
  for (const path of new Set(visible)) {
    const found = await locate(path, place);
    if (found !== undefined) seen.add(found.target);
  }
  let left = Math.min(MAX_ALL_BYTES, roomBytes);
  const files: RehydratedFile[] = [];
  for (const path of [...new Set([...opened].reverse())].slice(0, MAX_CANDIDATES)) {
    if (files.length === MAX_FILES || left < MIN_PIECE_BYTES) break;
    const found = await locate(path, place);
    if (found === undefined || seen.has(found.target)) continue;
    seen.add(found.target);
    const file = await readFile(path, found, place, Math.min(MAX_FILE_BYTES, left));
    if (file === undefined) continue;
    files.unshift(file);
    left -= Buffer.byteLength(file.content);
  }
  return files;
}

interface Located {
  /** As written, and where links lead if that is elsewhere. */
  readonly labels: readonly string[];
  /** Absolute; free of links. */
  readonly target: string;
}

async function locate(path: string, place: RehydrationPlace): Promise<Located | undefined> {
  try {
    const labels = await pathLabels(path, place);
    const canonical = labels.at(-1) ?? path;
    return {
      labels,
      target: isAbsolute(canonical) ? canonical : join(place.workspaceRoot, canonical),
    };
  } catch (error) {
    if (isCookieError(error)) return undefined;
    throw error;
  }
}

async function readFile(
  path: string,
  { labels, target }: Located,
  place: RehydrationPlace,
  maxBytes: number,
): Promise<RehydratedFile | undefined> {
  const resources = labels.map((label) => ({ action: "read" as const, label }));
  if (evaluatePolicy(place.policy, resources).effect !== "allow") return undefined;
  const read = await readBoundedFile(target, maxBytes, { followLinks: false }).catch(
    () => undefined,
  );
  if (read === undefined || read.kind === "missing" || read.kind === "not_regular")
    return undefined;
  // A link that was put in place meanwhile would have changed what the path is called.
  const after = await locate(path, place);
  if (after === undefined || after.target !== target) return undefined;
  const bytes = read.kind === "bytes" ? read.bytes : cutUtf8Bytes(read.head, maxBytes);
  const byteLength = read.kind === "bytes" ? read.bytes.byteLength : read.byteLength;
  const content = decodeText(bytes);
  const [label = path] = labels;
  if (content === undefined || content === "" || Buffer.byteLength(label) > 4096) return undefined;
  return { path: label, content, byte_length: byteLength, sha256: sha256Hex(content) };
}

/** Undefined for what is not text. */
function decodeText(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The argument that says which file a tool opens, if opening for reading is all that the tool may do. */
function pathOf(bound: BoundTool | undefined, input: unknown): string | undefined {
  const name = bound === undefined ? undefined : pathArgumentOf(bound);
  if (name === undefined || typeof input !== "object" || input === null) return undefined;
  const value = (input as Record<string, unknown>)[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function pathArgumentOf({ tool }: BoundTool): string | undefined {
  const { prepare, displayArgument } = tool;
  if (prepare.mode === "dynamic") {
    const onlyReads = prepare.actions.every((action) => action === "read");
    return onlyReads ? (displayArgument ?? undefined) : undefined;
  }
  if (prepare.resources.some(({ action }) => action !== "read")) return undefined;
  return prepare.resources.find(({ as, arg }) => as === "path" && arg !== undefined)?.arg;
}
