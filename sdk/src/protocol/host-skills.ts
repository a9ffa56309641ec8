import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { boundedText, ContextId, JsonObject } from "./scalars.ts";
import { PermissionEffect } from "./tool.ts";

/** A skill as it is listed; `permission_effect` and `visible` are the kernel's word (E-122). */
export const SkillDescriptor = z.looseObject({
  name: z.string(),
  description: z.string(),
  permission_effect: PermissionEffect,
  visible: z.boolean(),
});

/** The skills that the session knows. No kernel offers it yet. */
export const SkillsList = request(
  "host/skills/list",
  () => fromPlugin({ context_id: ContextId }),
  () => toPlugin({ skills: z.array(SkillDescriptor) }),
);

/** A skill and its text with the arguments filled in. No kernel offers it yet. */
export const SkillsGet = request(
  "host/skills/get",
  () =>
    fromPlugin({ context_id: ContextId, name: boundedText(1, 128), args: boundedText(0, 65_536) }),
  () => toPlugin({ skill: SkillDescriptor, rendered: z.string() }),
);

/** Makes a skill part of the session's record. No kernel offers it yet. */
export const SkillsCommit = request(
  "host/skills/commit",
  () =>
    fromPlugin({
      context_id: ContextId,
      name: boundedText(1, 128),
      args: boundedText(0, 65_536),
      rendered_body: boundedText(0, 1024 * 1024),
      source_path: boundedText(1, 4096),
      base_dir: boundedText(1, 4096),
      supporting_files: z.array(boundedText(1, 4096)).max(10),
      allowed_tools: z.array(boundedText(1, 4096)).max(256).optional(),
      model: JsonObject.optional(),
    }),
  () => toPlugin({ event: z.enum(["skill_loaded", "skill_invocation_noted"]) }),
);
