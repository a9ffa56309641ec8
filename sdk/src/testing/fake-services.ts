import { createHash } from "node:crypto";
import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";
import { checkValue } from "../protocol/check-value.ts";
import { CookieError } from "../protocol/errors.ts";
import {
  ArtifactsRead,
  ArtifactsWrite,
  MAX_INLINE_ARTIFACT_BYTES,
} from "../protocol/host-methods.ts";
import { HostGrant } from "../protocol/manifest.ts";
import type { Method, ParamsOf } from "../protocol/method.ts";
import type { JsonObject } from "../protocol/scalars.ts";
import { MAX_SCRATCH_IMPORT_BYTES } from "../protocol/scratch-file.ts";
import { grantOf } from "../protocol/service-grants.ts";

/** Answers one host request, by method name; a thrown `ToolError` travels with its code. */
export type FakeService = (params: JsonObject) => JsonObject | Promise<JsonObject>;
export type FakeServices = Readonly<Record<string, FakeService>>;

/** Where the plugin works; absolute. */
export interface FakeFolders {
  readonly workspace: string;
  readonly scratch: string;
}

const MAX_PAGE_LINES = 2000;

/** The services that work without a kernel: artifacts live in memory, the session is made up. */
export function inMemoryServices({ workspace, scratch }: FakeFolders): FakeServices {
  const artifacts = new Map<string, Buffer>();
  return {
    [ArtifactsWrite.name]: async (params) => {
      const bytes = await contentOf(parse(ArtifactsWrite, params), scratch);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const uri = `artifact://${sha256}`;
      artifacts.set(uri, bytes);
      return { uri, sha256, bytes: bytes.byteLength };
    },
    [ArtifactsRead.name]: (params) => {
      const request = parse(ArtifactsRead, params);
      const bytes = artifacts.get(request.uri);
      if (bytes === undefined) throw new CookieError("artifact_missing", "no such artifact");
      return { ...partOf(bytes, request), source: "artifact" };
    },
    "host/session/info": () => ({
      session_id: "00000000-0000-7000-8000-000000000001",
      root_session_id: "00000000-0000-7000-8000-000000000001",
      depth: 0,
      handle: "test",
      agent: "test",
      cwd: workspace,
      workspace_root: workspace,
    }),
  };
}

function parse<M extends Method>(method: M, params: JsonObject): ParamsOf<M> {
  const checked = checkValue(method.params, params);
  if (checked.ok) return checked.value as ParamsOf<M>;
  const { field, problem } = checked;
  throw new CookieError(
    "invalid_params",
    `invalid params of ${method.name}: ${field}: ${problem}`,
    { data: { field } },
  );
}

async function contentOf(
  { text, data, scratch: name }: ParamsOf<typeof ArtifactsWrite>,
  scratch: string,
): Promise<Buffer> {
  if (name !== undefined) return scratchFile(join(scratch, name), name);
  const bytes = text === undefined ? Buffer.from(data ?? "", "base64") : Buffer.from(text);
  if (bytes.byteLength <= MAX_INLINE_ARTIFACT_BYTES) return bytes;
  throw new CookieError(
    "resource_limit",
    `an artifact may hold ${MAX_INLINE_ARTIFACT_BYTES} bytes inline; write a scratch file instead`,
  );
}

/** A regular file without a second name, of at most 64 MiB (E-110). */
async function scratchFile(path: string, name: string): Promise<Buffer> {
  const stat = await lstat(path).catch((error: unknown) => {
    throw new CookieError("execution_failed", `the scratch file ${name} cannot be opened`, {
      cause: error,
    });
  });
  if (!stat.isFile() || stat.nlink !== 1) {
    throw new CookieError(
      "unsupported_security",
      `the scratch file ${name} is not taken: write a regular file under one name`,
    );
  }
  if (stat.size <= MAX_SCRATCH_IMPORT_BYTES) return readFile(path);
  throw new CookieError(
    "resource_limit",
    `the scratch file ${name} is larger than ${MAX_SCRATCH_IMPORT_BYTES} bytes`,
  );
}

/** The lines or the bytes that were asked for. */
function partOf(bytes: Buffer, request: ParamsOf<typeof ArtifactsRead>): JsonObject {
  const lines = bytes.byteLength === 0 ? [] : bytes.toString("utf8").split(/(?<=\n)/);
  const totals = { total_lines: lines.length, total_bytes: bytes.byteLength };
  const { byte_offset: from, byte_limit: length } = request;
  if (from !== undefined && length !== undefined) {
    requireInside(from <= bytes.byteLength, `byte_offset ${from}`);
    const end = Math.min(from + length, bytes.byteLength);
    const data = bytes.subarray(from, end).toString("base64");
    return { data, next_offset: null, next_byte: end < bytes.byteLength ? end : null, ...totals };
  }
  const { offset = 0, byte = 0, limit = MAX_PAGE_LINES } = request;
  requireInside(offset < lines.length || (offset === 0 && byte === 0), `offset ${offset}`);
  const next = offset + Math.min(limit, MAX_PAGE_LINES);
  const page = Buffer.from(lines.slice(offset, next).join(""));
  requireInside(byte === 0 || byte < Buffer.byteLength(lines[offset] ?? ""), `byte ${byte}`);
  return {
    text: page.toString("utf8", byte),
    next_offset: next < lines.length ? next : null,
    next_byte: next < lines.length ? 0 : null,
    ...totals,
  };
}

function requireInside(isInside: boolean, what: string): void {
  if (isInside) return;
  throw new CookieError("execution_failed", `${what} is past the end of the artifact`);
}

/** The grants that these services stand for. */
export function grantsOf(services: FakeServices): HostGrant[] {
  const grants = Object.keys(services).map(grantOf);
  return HostGrant.options.filter((grant) => grants.includes(grant));
}

/** Answers as the kernel does: unknown methods, missing grants, errors with their code. */
export async function answerHostRequest(
  services: FakeServices,
  method: string,
  params: JsonObject,
): Promise<JsonObject> {
  const service = Object.hasOwn(services, method) ? services[method] : undefined;
  if (service !== undefined) return service(params);
  if (method === "plugin/emit") {
    return { name: params["name"], bus: "published", durable: "dropped" };
  }
  if (method === "host/tools/list_changed") {
    const tools = Array.isArray(params["tools"]) ? (params["tools"] as { name?: unknown }[]) : [];
    const accepted = tools.map((tool) => String(tool?.name));
    return { revision: 1, accepted, shadowed: [], rejected: [] };
  }
  if (!method.startsWith("host/")) throw new CookieError("method_not_found", `no ${method}`);
  throw new CookieError("not_granted", `${method} is not granted here`, {
    data: { capability: grantOf(method) ?? method },
  });
}
