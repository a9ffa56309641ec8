import { expect, test } from "vitest";
import { EXPLORE_AGENT, makeDefaultAgent } from "../../../../kernel/src/config/built-in-agents.ts";

const READ = [
  "read * allow",
  "read store-v3.json deny",
  "read */store-v3.json deny",
  "read mcp-oauth.json deny",
  "read */mcp-oauth.json deny",
  "read id_* deny",
  "read */id_* deny",
  "read .netrc deny",
  "read */.netrc deny",
  "read application_default_credentials.json deny",
  "read */application_default_credentials.json deny",
  "read /proc/*/environ deny",
];

const rulesOf = ({ permissions }: typeof EXPLORE_AGENT) =>
  permissions.map(({ action, resource, effect }) => `${action} ${resource} ${effect}`);

test("[C-090] the default agent has exactly the rules of the table", () => {
  const models = [{ model: "a/b", variant: null }];
  const agent = makeDefaultAgent({ models, delegateTargets: ["zoe", "explore"] });
  expect(agent).toMatchObject({
    id: "default",
    source: "built_in",
    mode: "primary",
    enabled: true,
    models,
    maxOutputTokens: 0,
    timeoutMs: 0,
  });
  expect(rulesOf(agent)).toEqual([
    ...READ,
    "write * ask",
    "bash * ask",
    "delegate explore ask",
    "delegate zoe ask",
    "webfetch * ask",
    "mcp * ask",
    "plugin * ask",
    "skill * allow",
    "message * allow",
  ]);
});

test("[C-249] explore may read and nothing else", () => {
  expect(EXPLORE_AGENT).toMatchObject({
    id: "explore",
    mode: "subagent",
    models: [],
    enabled: true,
  });
  expect(rulesOf(EXPLORE_AGENT)).toEqual(READ);
});

test("the default prompt says that dependent calls belong in separate turns", () => {
  const { prompt } = makeDefaultAgent({ models: [], delegateTargets: [] });
  expect(prompt).toMatch(/prepared and permitted before the first of them executes/);
});
