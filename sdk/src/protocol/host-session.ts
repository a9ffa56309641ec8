import * as z from "zod";
import { DecisionSource } from "./approval.ts";
import { MediaKind } from "./host-media.ts";
import { fromPlugin, request, toPlugin } from "./method.ts";
import {
  AgentId,
  boundedText,
  ContextId,
  Count,
  controlFreeText,
  ModelKey,
  RunId,
  SessionId,
} from "./scalars.ts";
import { PermissionAction } from "./tool.ts";

/** Reads one section of the kernel's configuration that the manifest lists; secrets are null (E-121). */
export const ConfigGet = request(
  "host/config/get",
  () =>
    fromPlugin({
      /** One that the manifest's `kernel_config` lists. */
      section: boundedText(1, 64),
    }),
  () =>
    toPlugin({
      /** With its defaults; times in milliseconds. */
      value: z.unknown(),
    }),
);

/** Facts about the session behind a context; private to the harness, never to be passed on outside (E-126). */
export const SessionInfo = request(
  "host/session/info",
  () => fromPlugin({ context_id: ContextId }),
  () =>
    toPlugin({
      session_id: SessionId,
      root_session_id: SessionId,
      parent_session_id: SessionId.optional(),
      /** 0 for a root. */
      depth: Count,
      /** Names a child in its tree; null for a root. */
      handle: z.string().nullable(),
      agent: AgentId,
      run_id: RunId.optional(),
      /** Where relative paths begin. */
      cwd: z.string(),
      /** The project's folder. */
      workspace_root: z.string(),
      /** The model that made the call; only above tier untrusted. */
      model: z
        .object({
          key: ModelKey,
          /** What it takes in. */
          input: z.array(z.enum(["text", ...MediaKind.options])),
        })
        .optional(),
    }),
);

/**
 * Asks for permission to touch more than the call was prepared for (E-120). A denial is a result, not an error. The
 * call's timer stands still meanwhile (E-107).
 */
export const PermissionAsk = request(
  "host/permission/ask",
  () =>
    fromPlugin({
      context_id: ContextId,
      /** What it wants to touch. */
      resources: z
        .array(
          z.strictObject({
            /** One that the tool's declaration names. */
            action: PermissionAction,
            /** For action `plugin`: the tool's permission name, or it and a space in front of more. */
            label: controlFreeText(1, 4096),
          }),
        )
        .min(1)
        .max(64),
      /** Shown to whoever is asked. */
      reason: boundedText(1, 1024),
    }),
  () =>
    toPlugin({
      /** False: do without. */
      granted: z.boolean(),
      /** Who or what decided. */
      source: DecisionSource,
      /** Words of whoever refused. */
      feedback: z.string().optional(),
    }),
);
