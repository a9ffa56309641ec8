import * as z from "zod";
import { EffectivePermission } from "./client-methods.ts";
import { request } from "./method.ts";
import { SessionId, WildcardPattern } from "./scalars.ts";
import { PermissionAction } from "./tool.ts";

/** Removes the session's own rule for exactly this action and resource; without one nothing changes. */
export const SessionPermissionClear = request(
  "session.permission.clear",
  () =>
    z.strictObject({
      session_id: SessionId,
      action: PermissionAction,
      resource: WildcardPattern,
    }),
  () => z.object({ permissions: z.array(EffectivePermission) }),
);
