import { randomUUID } from "node:crypto";
import { HOOKS } from "../../protocol/hooks.ts";
import type { HookName } from "../../protocol/manifest.ts";
import type { JsonObject } from "../../protocol/scalars.ts";
import { tellAnswer } from "../answer.ts";
import { SESSION } from "./bench.ts";
import type { Check } from "./check.ts";
import { requireShape } from "./require-shape.ts";
import { fail, skip } from "./verdict.ts";

const MODEL = { model: "offline/script", variant: null };
const MESSAGES = [{ role: "user", content: "hello" }];
const CALL = { tool: "bash", arguments: { command: "ls" } };
const ATTEMPT = { attempt_id: randomUUID() };

/** What each hook is asked, beside session and context. */
const PARAMS: Readonly<Record<HookName, JsonObject>> = {
  user_before_input: { text: "hello" },
  model_before_select: { to: MODEL, source: "user" },
  agent_before_start: {
    agent_path: ["default"],
    prompt_context: {
      session_id: SESSION.session_id,
      input: "hello",
      system_prompt: "You help.",
      injected_messages: [],
    },
  },
  model_before_request: { ...ATTEMPT, messages: MESSAGES, model: MODEL, params: {} },
  provider_before_headers: { ...ATTEMPT, headers: {} },
  provider_before_request: {
    ...ATTEMPT,
    payload: { model: "script", messages: MESSAGES, tools: [] },
  },
  provider_after_response: { ...ATTEMPT, status: 200, headers: {} },
  message_end: { ...ATTEMPT, role: "assistant", content: [{ type: "text", text: "hi" }] },
  tool_before_call: { ...CALL, permission_name: "bash", resource: "ls" },
  tool_after_result: { ...CALL, result_content: "a.txt", is_error: false },
  session_before_compact: { checkpoint_id: "c-1", additions: [] },
  session_before_fork: { through_seq: 1 },
  session_before_revert: { through_seq: 1 },
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
      const answer = await peer.driver.request(
        HOOKS[name].name,
        { session_id: SESSION.session_id, context_id: randomUUID(), ...PARAMS[name] },
        bench.limits.cancelMs,
      );
      if (answer.kind !== "result") {
        fail(
          tellAnswer(`the hook ${name}`, answer),
          "answer it with a result within interception_timeout_ms (2 s)",
        );
      }
      requireShape(HOOKS[name].result, answer.result, {
        did: `answered the hook ${name}`,
        must: "answer what section 11 lists for it, and nothing else",
      });
    }
  },
};
