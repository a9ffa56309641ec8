import { randomUUID } from "node:crypto";
import type { HookName } from "../../protocol/manifest.ts";
import { describeAnswer } from "../answer.ts";
import { SESSION } from "./bench.ts";
import type { Check } from "./check.ts";
import { fail, skip } from "./verdict.ts";

interface Hook {
  readonly params: Readonly<Record<string, unknown>>;
  /** Empty: the result has no action. */
  readonly actions: readonly string[];
  readonly members: readonly string[];
  /** The member that an action cannot be without. */
  readonly needs?: Readonly<Record<string, string>>;
}

const MODEL = { model: "offline/script", variant: null };
const ATTEMPT = { attempt_id: "00000000-0000-7000-8000-000000000002" };

/** What each hook is asked and what it may answer (E-160). */
const HOOKS: Readonly<Record<HookName, Hook>> = {
  user_before_input: {
    params: { text: "hello" },
    actions: ["allow", "transform", "handled"],
    members: ["new_text", "reason"],
    needs: { transform: "new_text" },
  },
  model_before_select: {
    params: { to: MODEL, source: "user" },
    actions: ["allow", "block"],
    members: ["reason"],
  },
  agent_before_start: {
    params: {
      agent_path: "build",
      prompt_context: {
        session_id: SESSION.session_id,
        input: "hello",
        system_prompt: "You help.",
        injected_messages: [],
      },
    },
    actions: [],
    members: ["append_to_system_prompt", "addendum", "replace_system_prompt", "inject_message"],
  },
  model_before_request: {
    params: {
      ...ATTEMPT,
      messages: [{ role: "user", content: "hello" }],
      model: MODEL,
      params: {},
    },
    actions: ["keep", "replace"],
    members: ["messages", "params_adjustments"],
  },
  provider_before_headers: {
    params: { ...ATTEMPT, headers: {} },
    actions: [],
    members: ["set", "delete"],
  },
  provider_before_request: {
    params: { ...ATTEMPT, payload: {} },
    actions: ["keep", "replace"],
    members: ["payload"],
    needs: { replace: "payload" },
  },
  provider_after_response: {
    params: { ...ATTEMPT, status: 200, headers: {} },
    actions: [],
    members: [],
  },
  message_end: {
    params: { ...ATTEMPT, role: "assistant", content: [{ type: "text", text: "hi" }] },
    actions: ["keep", "replace"],
    members: ["content"],
    needs: { replace: "content" },
  },
  tool_before_call: {
    params: { tool: "bash", arguments: { command: "ls" }, permission_name: "bash", resource: "ls" },
    actions: ["allow", "block"],
    members: ["reason", "modified_arguments", "message_to_model"],
  },
  tool_after_result: {
    params: {
      tool: "bash",
      arguments: { command: "ls" },
      result_content: "a.txt",
      is_error: false,
    },
    actions: ["keep", "replace"],
    members: ["replacement_content", "note"],
    needs: { replace: "replacement_content" },
  },
  session_before_compact: {
    params: { checkpoint_id: "c-1", additions: [] },
    actions: [],
    members: ["addendum", "instructions_override", "cancel", "reason"],
  },
  session_before_fork: {
    params: { through_seq: 1 },
    actions: ["allow", "block"],
    members: ["reason"],
  },
  session_before_revert: {
    params: { through_seq: 1 },
    actions: ["allow", "block", "override"],
    members: ["reason", "instructions_override"],
    needs: { override: "instructions_override" },
  },
};

export const checkHooks: Check = {
  id: "C-23",
  title: "hooks: each declared one answers in time, in the form that it must have",
  ids: ["E-160", "E-162", "E-166"],
  async run(bench) {
    const names = bench.options.subject.manifest?.capabilities?.intercept ?? [];
    if (names.length === 0) skip("the plugin declares no hooks");
    const { peer } = await bench.start(await bench.folder());
    for (const name of names) {
      const hook = HOOKS[name];
      const answer = await peer.driver.request(
        `plugin/intercept/${name}`,
        { session_id: SESSION.session_id, context_id: randomUUID(), ...hook.params },
        bench.limits.cancelMs,
      );
      if (answer.kind !== "result") {
        fail(
          `answered the hook ${name} with ${describeAnswer(answer)}`,
          "answer it with a result within interception_timeout_ms (2 s)",
        );
      }
      judge(name, hook, answer.result);
    }
  },
};

function judge(name: HookName, hook: Hook, result: Readonly<Record<string, unknown>>): void {
  const { action } = result;
  if (hook.actions.length > 0 && !hook.actions.includes(String(action))) {
    fail(
      `answered the hook ${name} with the action ${JSON.stringify(action)}`,
      `answer one of ${hook.actions.join(", ")}`,
    );
  }
  const known = [...hook.members, "_meta", ...(hook.actions.length > 0 ? ["action"] : [])];
  const unknown = Object.keys(result).find((member) => !known.includes(member));
  if (unknown !== undefined) {
    fail(`answered the hook ${name} with a member ${unknown}`, `leave it out: ${name} has none`);
  }
  const needed = hook.needs?.[String(action)];
  if (needed !== undefined && result[needed] === undefined) {
    fail(`answered the hook ${name} with ${String(action)} and no ${needed}`, `add ${needed}`);
  }
}
