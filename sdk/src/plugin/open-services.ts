import {
  DelegationCancel,
  DelegationResult,
  DelegationStart,
  DelegationTargets,
} from "../protocol/host-delegation.ts";
import { GoalsGet, GoalsUpdate } from "../protocol/host-goals.ts";
import { MediaDeliver, MediaSniff } from "../protocol/host-media.ts";
import { MessagesSend } from "../protocol/host-messages.ts";
import { ArtifactsRead, ArtifactsWrite } from "../protocol/host-methods.ts";
import { PermissionAsk, SessionInfo } from "../protocol/host-session.ts";
import { SkillsCommit, SkillsGet, SkillsList } from "../protocol/host-skills.ts";
import type { Method, ParamsInput } from "../protocol/method.ts";
import type { ContextId } from "../protocol/scalars.ts";
import type { Connection } from "../rpc/connection.ts";
import { saveAttachment } from "./save-attachment.ts";
import type { ParamsFor, ServiceClient } from "./service-client.ts";

const REQUEST_TIMEOUT_MS = 30_000;

/** The kernel services of one request (E-118). */
export function openServices(
  connection: Connection,
  contextId: string,
  signal: AbortSignal,
  scratch: string,
): ServiceClient {
  const context = { context_id: contextId as ContextId };
  const options = { signal, timeoutMs: REQUEST_TIMEOUT_MS };
  /** Some answers are as far away as a person. */
  const patient = { signal };
  const ask = <M extends Method>(
    method: M,
    params: ParamsFor<M>,
    how: { readonly signal: AbortSignal; readonly timeoutMs?: number } = options,
  ) => connection.request(method, { ...params, ...context } as ParamsInput<M>, how);
  return {
    readArtifactBytes: async ({ uri, byteOffset, byteLimit }) => {
      const range = { uri, byte_offset: byteOffset, byte_limit: byteLimit };
      const answer = await ask(ArtifactsRead, range);
      return {
        bytes: Buffer.from(answer.data ?? "", "base64"),
        nextByte: answer.next_byte,
        totalBytes: answer.total_bytes,
      };
    },
    writeArtifactFile: (name) => ask(ArtifactsWrite, { scratch: name }),
    attach: (bytes, file) => saveAttachment(scratch, bytes, file),
    sessionInfo: () => ask(SessionInfo, {}),
    askPermission: (question) => ask(PermissionAsk, question, patient),
    sniffMedia: (content) => ask(MediaSniff, content),
    deliverMedia: (content) => ask(MediaDeliver, content),
    delegation: {
      start: (child) => ask(DelegationStart, child),
      result: (page) => ask(DelegationResult, page, page.wait === true ? patient : options),
      cancel: (child) => ask(DelegationCancel, child),
      targets: async () => (await ask(DelegationTargets, {})).targets,
    },
    sendMessage: (message) => ask(MessagesSend, message),
    goals: {
      get: async () => (await ask(GoalsGet, {})).goal,
      update: async (items) => (await ask(GoalsUpdate, { items })).goal,
    },
    skills: {
      list: async () => (await ask(SkillsList, {})).skills,
      get: (name, args = "") => ask(SkillsGet, { name, args }),
      commit: (skill) => ask(SkillsCommit, skill),
    },
  };
}
