import type { HostGrant } from "./manifest.ts";

/** The grant that each service of the kernel needs (E-118); one that stands here may not be offered yet. */
export const SERVICE_GRANTS = {
  "host/artifacts/read": "artifacts.read",
  "host/artifacts/write": "artifacts.write",
  "host/delegation/cancel": "delegation",
  "host/delegation/result": "delegation",
  "host/delegation/start": "delegation",
  "host/delegation/targets": "delegation",
  "host/goals/get": "goals",
  "host/goals/update": "goals",
  "host/media/deliver": "media",
  "host/media/sniff": "media",
  "host/messages/send": "messaging",
  "host/permission/ask": "permission.ask",
  "host/session/info": "session.info",
  "host/skills/commit": "skills.commit",
  "host/skills/get": "skills.read",
  "host/skills/list": "skills.read",
} as const satisfies Readonly<Record<string, HostGrant>>;

/** Undefined for a method that needs none, or is none. */
export function grantOf(method: string): HostGrant | undefined {
  const grants: Readonly<Record<string, HostGrant>> = SERVICE_GRANTS;
  return Object.hasOwn(grants, method) ? grants[method] : undefined;
}
