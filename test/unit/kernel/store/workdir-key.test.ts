import { expect, test } from "vitest";
import {
  findWorkdirKeys,
  workdirHash,
  workdirKey,
} from "../../../../kernel/src/store/workdir-key.ts";

const suffixOf = (cwd: string) => workdirKey(cwd).slice(17);

test.for([
  ["/home/me/Project", "project"],
  ["/home/me/My Project (2)", "my-project-2"],
  ["/home/me/--a__b--", "a__b"],
  ["/home/me/v1.2_x", "v1.2_x"],
  [`/home/me/${"long".repeat(20)}`, "long".repeat(8)],
  ["/home/me/日本", ""],
  ["/", ""],
] as const)("[S-068] the store of %s ends in %s", ([cwd, suffix]) => {
  expect(suffixOf(cwd)).toBe(suffix);
  expect(workdirKey(cwd)).toMatch(/^[0-9a-f]{16}(?:-[a-z0-9._][a-z0-9._-]*)?$/);
});

test("[S-068] [B109] two long paths with the same beginning have two stores", () => {
  const shared = `/home/me/${"deep/".repeat(40)}`;
  expect(workdirKey(`${shared}a/project`)).not.toBe(workdirKey(`${shared}b/project`));
});

test("[S-069] a store is found by its hash, whatever its suffix, lowest name first", () => {
  const hash = workdirHash("/home/me/project");
  const names = [`${hash}-stale`, "0000000000000000-project", hash, `${hash}x`];
  expect(findWorkdirKeys("/home/me/project", names)).toEqual([hash, `${hash}-stale`]);
});
