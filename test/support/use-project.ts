import { onTestFinished } from "vitest";
import { createTempProject, type TempProject } from "./temp-project.ts";

/** A project of its own for the running test, removed when the test ends. */
export async function useProject(): Promise<TempProject> {
  const project = await createTempProject();
  onTestFinished(() => project.remove());
  return project;
}
