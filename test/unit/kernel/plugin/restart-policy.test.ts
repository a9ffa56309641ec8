import { expect, test } from "vitest";
import { PLUGIN_LIMITS } from "../../../../kernel/src/plugin/plugin-limits.ts";
import { RestartPolicy } from "../../../../kernel/src/plugin/restart-policy.ts";

test("[E-063] the first restart is immediate, then the pause doubles up to 30 s", () => {
  const policy = new RestartPolicy({ ...PLUGIN_LIMITS, crashes: 100 });
  const pauses = Array.from({ length: 8 }, () => {
    policy.recordCrash(1000);
    return policy.delayMs(1000);
  });
  expect(pauses).toEqual([0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test("[E-063] time that has passed shortens the pause", () => {
  const policy = new RestartPolicy(PLUGIN_LIMITS);
  policy.recordCrash(0);
  policy.recordCrash(100);
  expect(policy.delayMs(600)).toBe(500);
  expect(policy.delayMs(5000)).toBe(0);
});

test("[E-063] five crashes within ten minutes are too many, older ones are forgotten", () => {
  const policy = new RestartPolicy(PLUGIN_LIMITS);
  for (let crash = 0; crash < 5; crash += 1) policy.recordCrash(crash * 1000);
  expect(policy.exhausted(5000)).toBe(true);
  expect(policy.exhausted(600_500)).toBe(false);
});
