import { CookieError, ToolsListChanged } from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import * as z from "zod";
import type { DynamicTools } from "./dynamic-tools.ts";

export interface ToolListOptions {
  readonly tools: DynamicTools;
  /** False until `plugin/initialize` is answered (E-022). */
  initialized(): boolean;
  isGranted(): boolean;
}

/** Takes new lists of dynamic tools (E-130). To be called before the connection listens. */
export function serveToolList(rpc: Connection, options: ToolListOptions): void {
  const { name, params } = ToolsListChanged;
  // The connection would check the params first, and tell a plugin without the right about them (E-118).
  rpc.onRequest({ ...ToolsListChanged, params: z.unknown() }, (raw) => {
    if (!options.initialized()) {
      throw new CookieError("not_initialized", `answer plugin/initialize before ${name}`);
    }
    if (!options.isGranted()) {
      throw new CookieError("not_granted", `${name} needs the capability dynamic_tools`, {
        data: { capability: "dynamic_tools" },
      });
    }
    const list = params.safeParse(raw);
    if (list.success) return options.tools.replace(list.data);
    const [issue] = list.error.issues;
    const field = issue?.path.join(".") || "params";
    throw new CookieError(
      "invalid_params",
      `invalid params of ${name}: ${field}: ${issue?.message ?? "invalid"}`,
      { data: { field } },
    );
  });
}
