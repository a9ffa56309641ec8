import { createHash } from "node:crypto";
import { CookieError } from "../protocol/errors.ts";
import { HostGrant } from "../protocol/manifest.ts";
import type { JsonObject } from "../protocol/scalars.ts";

/** Answers one host request, by method name; a thrown `ToolError` travels with its code. */
export type FakeService = (params: JsonObject) => JsonObject | Promise<JsonObject>;
export type FakeServices = Readonly<Record<string, FakeService>>;

/** The grant that each host service needs, by its name or the beginning of it (E-118). */
const GRANTS: readonly (readonly [prefix: string, grant: HostGrant])[] = [
  ["host/artifacts/write", "artifacts.write"],
  ["host/artifacts/read", "artifacts.read"],
  ["host/session/info", "session.info"],
  ["host/media/", "media"],
  ["host/permission/ask", "permission.ask"],
  ["host/delegation/", "delegation"],
  ["host/messages/", "messaging"],
  ["host/goals/", "goals"],
  ["host/skills/commit", "skills.commit"],
  ["host/skills/", "skills.read"],
];

/** The services that work without a kernel: artifacts live in memory, the session is made up. */
export function inMemoryServices(workspace: string): FakeServices {
  const artifacts = new Map<string, Buffer>();
  return {
    "host/artifacts/write": ({ text, data }) => {
      const bytes =
        typeof text === "string" ? Buffer.from(text) : Buffer.from(String(data), "base64");
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const uri = `artifact://${sha256}`;
      artifacts.set(uri, bytes);
      return { uri, sha256, bytes: bytes.byteLength };
    },
    "host/artifacts/read": ({ uri, offset = 0, limit = 2000 }) => {
      const bytes = artifacts.get(String(uri));
      if (bytes === undefined) throw new CookieError("artifact_missing", "no such artifact");
      const lines = bytes.toString("utf8").split(/(?<=\n)/);
      const first = Number(offset);
      const next = first + Number(limit);
      return {
        text: lines.slice(first, next).join(""),
        next_offset: next < lines.length ? next : null,
        next_byte: next < lines.length ? 0 : null,
        total_lines: lines.length,
        total_bytes: bytes.byteLength,
        source: "artifact",
      };
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

/** The grants that these services stand for. */
export function grantsOf(services: FakeServices): HostGrant[] {
  const grants = Object.keys(services).map(grantOf);
  return HostGrant.options.filter((grant) => grants.includes(grant));
}

function grantOf(method: string): HostGrant | undefined {
  return GRANTS.find(([prefix]) => method.startsWith(prefix))?.[1];
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
