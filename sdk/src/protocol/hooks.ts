import * as z from "zod";
import type { HookName } from "./manifest.ts";
import { ModelSelection } from "./message.ts";
import { fromPlugin, type Method, request, toPlugin } from "./method.ts";
import {
  AgentId,
  AttemptId,
  boundedText,
  ContextId,
  Count,
  JsonObject,
  SessionId,
  ToolName,
} from "./scalars.ts";

const nonblank = z.string().refine((text) => text.trim() !== "", { error: "must not be blank" });
/** Why a hook acts as it does, for people; cut at 4 KiB, so that a long one does not undo a block. */
const reason = z.string().optional();
const count = z.int().min(1);

/** One part of what a model said, without the provider's own data. */
export const HookPart = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({ type: z.literal("reasoning"), text: z.string() }),
  z.strictObject({
    type: z.literal("tool_call"),
    /** The model's id of the call. */
    id: boundedText(1, 512),
    /** Of the tool. */
    name: boundedText(1, 512),
    /** The arguments. */
    input: z.unknown(),
    /** The text of arguments that are no JSON object; `input` is then null. */
    raw_input: z.string().nullable().optional(),
  }),
]);
export type HookPart = z.infer<typeof HookPart>;

/** One message of a request, as hooks see it; the answers to calls stand right behind the message that asks. */
export const HookMessage = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: z.string() }),
  z.strictObject({ role: z.literal("user"), content: z.string() }),
  z.strictObject({ role: z.literal("assistant"), content: z.array(HookPart).max(4096) }),
  z.strictObject({
    role: z.literal("tool"),
    content: z
      .array(
        z.strictObject({
          /** The `id` of the call that is answered. */
          call_id: boundedText(1, 512),
          /** Of the tool. */
          name: boundedText(1, 512),
          /** What the model reads. */
          output: z.string(),
          /** The call failed, or the output reports a problem. */
          is_error: z.boolean(),
        }),
      )
      .min(1)
      .max(4096),
  }),
]);
export type HookMessage = z.infer<typeof HookMessage>;

const sampling = {
  /** Most tokens of the answer. */
  max_tokens: count.optional(),
  /** As the provider understands it. */
  temperature: z.number().min(0).max(2).optional(),
  /** As the provider understands it. */
  top_p: z.number().min(0).max(1).optional(),
};

/** A request in the kernel's own form, before its adaptor writes it for the provider. */
export const HookRequest = z.strictObject({
  /** The provider's name of the model; cannot be changed. */
  model: z.string(),
  /** The whole conversation. */
  messages: z.array(HookMessage).min(1),
  /** What the model may call; a change may take tools away and add none. */
  tools: z
    .array(
      z.strictObject({
        name: boundedText(1, 64),
        description: boundedText(0, 16_384),
        parameters: JsonObject,
      }),
    )
    .max(4096),
  ...sampling,
});
export type HookRequest = z.infer<typeof HookRequest>;

/** A message that a hook adds to the conversation before the submitted input. */
export const InjectedMessage = z.strictObject({
  /** Whose words they are; `system` reaches the model inside a user message (E-167). */
  role: z.enum(["system", "user", "assistant"]),
  content: nonblank,
});
export type InjectedMessage = z.infer<typeof InjectedMessage>;

const allowOrBlock = {
  /** `block` ends the chain and the operation. */
  action: z.enum(["allow", "block"]),
  reason,
};
/** `keep` changes nothing. */
const action = z.enum(["keep", "replace"]);

/** True unless `replace` comes without its value, or a value without `replace`. */
function replaces(member: string) {
  return (answer: Record<string, unknown>) =>
    (answer["action"] === "replace") === (answer[member] !== undefined);
}

/**
 * Every interception hook, one request each (E-160). `session_id` says where it happens; `context_id` is good for host
 * services until the hook is answered.
 */
export const HOOKS = {
  /** Before a person's input is committed; not in delegated sessions. */
  user_before_input: hook(
    "user_before_input",
    () => ({
      /** As the plugins before have left it. */
      text: z.string(),
    }),
    () =>
      fromPlugin({
        /** `handled` starts no run and does not ask the plugins behind. */
        action: z.enum(["allow", "transform", "handled"]),
        /** Only with `transform`. */
        new_text: nonblank.optional(),
        reason,
      }).refine((answer) => (answer.action === "transform") === (answer.new_text !== undefined), {
        error: "transform needs new_text, and nothing else takes it",
      }),
  ),
  /** Before a model is first used, changed, or fallen back to. */
  model_before_select: hook(
    "model_before_select",
    () => ({
      /** Absent in a session that has used none. */
      from: ModelSelection.optional(),
      to: ModelSelection,
      /** `fallback_restore`: the model before has failed. */
      source: z.enum(["user", "config", "fallback_restore"]),
    }),
    () => fromPlugin(allowOrBlock),
  ),
  /** While a run is set up, before anything of it is recorded. */
  agent_before_start: hook(
    "agent_before_start",
    () => ({
      /** Agent ids from the root session's down to this one's. */
      agent_path: z.array(AgentId).min(1),
      /** What the run begins with. */
      prompt_context: z.object({
        session_id: SessionId,
        /** What will be submitted. */
        input: z.string(),
        /** Composed so far; at most 128 KiB. */
        system_prompt: z.string(),
        /** Of the plugins before. */
        injected_messages: z.array(InjectedMessage),
      }),
    }),
    () =>
      fromPlugin({
        /** Added as a paragraph of its own. */
        append_to_system_prompt: nonblank.optional(),
        /** Another name of `append_to_system_prompt`. */
        addendum: nonblank.optional(),
        /** Done before anything is appended. */
        replace_system_prompt: nonblank.optional(),
        /** One message, behind those of the plugins before. */
        inject_message: InjectedMessage.optional(),
      }).refine((answer) => !(answer.append_to_system_prompt && answer.addendum), {
        error: "addendum is another name of append_to_system_prompt; give one of them",
      }),
  ),
  /** Each attempt, once its messages are put together. */
  model_before_request: hook(
    "model_before_request",
    () => ({
      attempt_id: AttemptId,
      /** As the plugins before have left them. */
      messages: z.array(HookMessage),
      model: ModelSelection,
      /** An absent member is the provider's default. */
      params: z.object(sampling),
    }),
    () =>
      fromPlugin({
        action,
        /** All of them; one that comes back unchanged keeps what hooks do not see. */
        messages: z.array(HookMessage).min(1).optional(),
        /** An absent member stays as it is. */
        params_adjustments: z.strictObject(sampling).optional(),
      }).refine(
        ({ action: taken, messages, params_adjustments: adjusted }) =>
          (taken === "replace") === (messages !== undefined || adjusted !== undefined),
        { error: "replace needs messages or params_adjustments, and keep takes none" },
      ),
  ),
  /** After that: the headers that the configuration adds to a request, without credentials; names in lower case. */
  provider_before_headers: hook(
    "provider_before_headers",
    () => ({
      attempt_id: AttemptId,
      /** As the plugins before have left them. */
      headers: z.record(z.string(), z.string()),
    }),
    () =>
      fromPlugin({
        /** In place of a header of that name. */
        set: z.record(boundedText(1, 128), boundedText(0, 8192)).optional(),
        /** Names. */
        delete: z.array(boundedText(1, 128)).max(256).optional(),
      }),
  ),
  /** After that: the whole request in the kernel's form. */
  provider_before_request: hook(
    "provider_before_request",
    () => ({ attempt_id: AttemptId, payload: HookRequest }),
    () =>
      fromPlugin({
        action,
        /** All of it. */
        payload: HookRequest.optional(),
      }).refine(replaces("payload"), {
        error: "replace needs payload, and keep takes none",
      }),
  ),
  /** When the head of a response has come; observes only. */
  provider_after_response: hook(
    "provider_after_response",
    () => ({
      attempt_id: AttemptId,
      /** HTTP status. */
      status: z.int(),
      /** Without cookies and credentials; names in lower case. */
      headers: z.record(z.string(), z.string()),
    }),
    () => fromPlugin({}),
  ),
  /** When a turn is complete, before it is committed. */
  message_end: hook(
    "message_end",
    () => ({
      attempt_id: AttemptId,
      role: z.literal("assistant"),
      /** As the plugins before have left it. */
      content: z.array(HookPart),
    }),
    () =>
      fromPlugin({
        action,
        /** All of it; its calls are those that run. */
        content: z.array(HookPart).max(4096).optional(),
      }).refine(replaces("content"), { error: "replace needs content, and keep takes none" }),
  ),
  /** Inside a permitted call, immediately before it runs. */
  tool_before_call: hook(
    "tool_before_call",
    () => ({
      tool: ToolName,
      /** As the plugins before have left them. */
      arguments: JsonObject,
      /** As the tool declares it. */
      permission_name: z.string(),
      /** First label of the first resource; null for a name-only check. */
      resource: z.string().nullable(),
    }),
    () =>
      fromPlugin({
        ...allowOrBlock,
        /** They must lead to the same actions, resources and labels as those that were approved. */
        modified_arguments: JsonObject.optional(),
        /** What the model reads of a block, cut at 4 KiB; without it, `reason`. */
        message_to_model: z.string().optional(),
      }).refine((answer) => answer.action === "allow" || answer.modified_arguments === undefined, {
        error: "block takes no modified_arguments",
      }),
  ),
  /** When a call has run, before its end is committed. */
  tool_after_result: hook(
    "tool_after_result",
    () => ({
      tool: ToolName,
      /** Those that the call ran with. */
      arguments: JsonObject,
      /** What the model would read. */
      result_content: z.string(),
      /** The call failed, or its answer reports a problem. */
      is_error: z.boolean(),
    }),
    () =>
      fromPlugin({
        action,
        /** At most `tool_output.max_bytes` bytes. */
        replacement_content: z.string().optional(),
        /** Added to what the model reads, as one line. */
        note: z.string().optional(),
      }).refine(replaces("replacement_content"), {
        error: "replace needs replacement_content, and keep takes none",
      }),
  ),
  /** Before a conversation is summarized. */
  session_before_compact: hook(
    "session_before_compact",
    () => ({
      /** Of this compaction. */
      checkpoint_id: boundedText(1, 128),
      /** What the plugins before have added. */
      additions: z.array(z.string()),
      /** As the plugins before have left them; absent: the kernel's own. */
      instructions: z.string().optional(),
    }),
    () =>
      fromPlugin({
        /** Added to the instructions; at most 64 KiB with those of the other plugins. */
        addendum: nonblank.optional(),
        /** In place of the instructions; at most 64 KiB. */
        instructions_override: nonblank.optional(),
        /** The conversation is not summarized, and why is told. */
        cancel: z.boolean().optional(),
        reason,
      }),
  ),
  /** Before `session.fork`. */
  session_before_fork: hook(
    "session_before_fork",
    () => ({
      /** The last event that the fork has. */
      through_seq: Count,
    }),
    () => fromPlugin(allowOrBlock),
  ),
  /** Before `session.revert`. */
  session_before_revert: hook(
    "session_before_revert",
    () => ({
      /** The last event that stays. */
      through_seq: Count,
      /** As the plugins before have left them; absent: none. */
      instructions: z.string().optional(),
    }),
    () =>
      fromPlugin({
        action: z.enum(["allow", "block", "override"]),
        reason,
        /** In place of `instructions`. */
        instructions_override: nonblank.optional(),
      }).refine(
        (answer) => (answer.action === "override") === (answer.instructions_override !== undefined),
        { error: "override needs instructions_override, and nothing else takes it" },
      ),
  ),
} as const satisfies Record<HookName, Method>;

type Hooks = typeof HOOKS;

/** What a hook is told, as it stands on the wire. */
export type HookParams<H extends HookName> = z.infer<Hooks[H]["params"]>;
/** What a hook answers, as it stands on the wire. */
export type HookResult<H extends HookName> = z.infer<Hooks[H]["result"]>;

function hook<P extends z.ZodRawShape, R extends z.ZodType>(
  name: HookName,
  buildShape: () => P,
  buildResult: () => R,
) {
  return request(
    `plugin/intercept/${name}`,
    () => toPlugin({ session_id: SessionId, context_id: ContextId, ...buildShape() }),
    buildResult,
  );
}
