import {
  type EmitResult,
  type ParamsOf,
  PluginEmit,
  PluginEmitNotice,
  PluginEmitResult,
} from "@cookie-agent/sdk/protocol";
import type { Connection } from "@cookie-agent/sdk/rpc";
import { notInitialized } from "./open-context.ts";

/** Answers to notifications that may wait for a plugin to read them; those on top of it are dropped (E 12). */
const MAX_WAITING_ANSWERS = 1024;

/**
 * Takes `plugin/emit` in both forms (E-146). To be called before the connection listens.
 * @param publish Undefined until the plugin has introduced itself; a notification is dropped then.
 */
export function serveEmit(
  rpc: Connection,
  publish: () => ((emission: ParamsOf<typeof PluginEmit>) => Promise<EmitResult>) | undefined,
): void {
  rpc.onRequest(PluginEmit, (emission) => {
    const act = publish();
    if (act !== undefined) return act(emission);
    throw notInitialized(PluginEmit.name);
  });
  let waiting = 0;
  const answer = async (result: Promise<EmitResult>) => {
    waiting += 1;
    try {
      await rpc.notify(PluginEmitResult, await result);
    } finally {
      waiting -= 1;
    }
  };
  rpc.onNotification(PluginEmitNotice, (emission) => {
    const result = publish()?.(emission);
    if (result !== undefined && waiting < MAX_WAITING_ANSWERS) void answer(result);
  });
}
