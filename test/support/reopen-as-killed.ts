import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { openTestKernel, type TestKernel, type TestKernelOptions } from "./open-test-kernel.ts";

/** A second kernel that finds the sessions as they are once `ready` has come, as if the first had been killed then. */
export async function reopenAsKilled(
  first: TestKernel,
  ready: Promise<unknown>,
  options: TestKernelOptions = {},
): Promise<TestKernel> {
  await ready;
  const sessions = join(first.project.stateDir, "sessions");
  await cp(sessions, `${sessions}-copy`, { recursive: true });
  await first.close();
  await rm(sessions, { recursive: true });
  await cp(`${sessions}-copy`, sessions, { recursive: true });
  return openTestKernel({ on: first, ...options });
}
