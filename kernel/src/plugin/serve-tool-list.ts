import { ToolsListChanged } from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { DynamicTools } from "./dynamic-tools.ts";
import { notGranted, parseParams, requireInitialized } from "./open-context.ts";

export interface ToolListOptions {
  readonly tools: DynamicTools;
  /** False until `plugin/initialize` is answered (E-022). */
  initialized(): boolean;
  isGranted(): boolean;
}

/** Takes new lists of dynamic tools (E-130). To be called before the connection listens. */
export function serveToolList(rpc: Connection, options: ToolListOptions): void {
  // The connection would check the params first, and tell a plugin without the right about them (E-118).
  rpc.onRequest({ ...ToolsListChanged, params: z.unknown() }, (raw) => {
    requireInitialized(options, ToolsListChanged.name);
    if (!options.isGranted()) throw notGranted(ToolsListChanged.name, "dynamic_tools");
    return options.tools.replace(parseParams(ToolsListChanged, raw));
  });
}
