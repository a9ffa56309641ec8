import { describe, expect, test } from "vitest";
import { childEnvironment } from "../../../../kernel/src/plugin/child-environment.ts";

const source = {
  env: { PATH: "/bin", HOME: "/home/x", KEY: "secret", COOKIE_DAEMON_TOKEN: "t", EMPTY: "" },
  secretEnvNames: new Set(["KEY"]),
};

describe("childEnvironment", () => {
  test("[E-046] nothing is inherited unless it is named", () => {
    expect(childEnvironment(source, [], {})).toEqual({ COOKIE_PLUGIN_PROTOCOL: "0.1.0" });
  });

  test.for([["*"], [["PATH", "HOME", "KEY", "COOKIE_DAEMON_TOKEN", "EMPTY", "ABSENT"]]] as const)(
    "[E-046] secrets and the daemon token are never inherited, not even with %j",
    ([inherit]) => {
      expect(childEnvironment(source, inherit, { OWN: "1" })).toEqual({
        PATH: "/bin",
        HOME: "/home/x",
        EMPTY: "",
        OWN: "1",
        COOKIE_PLUGIN_PROTOCOL: "0.1.0",
      });
    },
  );

  test("[E-046] the entry's values are taken verbatim and win over inherited ones", () => {
    expect(childEnvironment(source, ["PATH"], { PATH: "/usr/bin", KEY: "mine" })).toEqual({
      PATH: "/usr/bin",
      KEY: "mine",
      COOKIE_PLUGIN_PROTOCOL: "0.1.0",
    });
  });
});
