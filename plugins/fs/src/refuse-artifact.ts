import { ToolError } from "@cookie-agent/sdk/plugin";

/** How the address of a stored output begins. */
export const ARTIFACT_SCHEME = "artifact://";

/** An artifact URI taken for a path would create a folder named `artifact:`. */
export function refuseArtifact(filePath: string): void {
  if (!filePath.startsWith(ARTIFACT_SCHEME)) return;
  throw new ToolError("invalid_arguments", `${filePath} is an artifact; artifacts are read-only`, {
    data: { field: "filePath" },
  });
}
