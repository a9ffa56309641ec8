import { describe, expect, test } from "vitest";
import { parseAllowedTools } from "../../../../cli/src/headless/allowed-tools.ts";

describe("--allowed-tools", () => {
  test.for([
    { values: [], rules: [] },
    { values: ["read"], rules: [{ action: "read", resource: "*" }] },
    {
      values: ["bash, write", "mcp"],
      rules: [
        { action: "bash", resource: "*" },
        { action: "write", resource: "*" },
        { action: "mcp", resource: "*" },
      ],
    },
    {
      values: ["delegate,plugin"],
      rules: [
        { action: "delegate", resource: "*" },
        { action: "plugin", resource: "*" },
      ],
    },
    { values: ["plugin:notes"], rules: [{ action: "plugin", resource: "notes *" }] },
    { values: ["skill:code-review"], rules: [{ action: "skill", resource: "code-review" }] },
    { values: [",read,"], rules: [{ action: "read", resource: "*" }] },
  ])("[C-222] $values become allow rules", ({ values, rules }) => {
    expect(parseAllowedTools(values)).toEqual(rules);
  });

  test.for([
    "webfetch",
    "message",
    "skill",
    "Read",
    "edit",
    "plugin:",
    "plugin:a b",
    "skill:-x",
    "bash:git *",
    "*",
  ])("[C-222] %s is a usage error that names it", (value) => {
    expect(() => parseAllowedTools(["read", value])).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(`"${value}"`) }),
    );
  });
});
