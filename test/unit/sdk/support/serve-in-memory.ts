import { type Plugin, servePlugin } from "@cookie-agent/sdk/plugin";
import {
  type ParamsOf,
  PluginInitialize,
  PluginShutdown,
  ToolsProgress,
} from "@cookie-agent/sdk/protocol";
import { Connection, createMemoryPair } from "@cookie-agent/sdk/rpc";
import { initializeParams } from "./plugin-params.ts";

/** A delta and the raw bytes behind it. */
export type Progress = ParamsOf<typeof ToolsProgress> & { readonly raw?: Buffer };

/** A plugin served over the memory pair, and the kernel's end of it. */
export async function serveInMemory(
  plugin: Plugin,
  options: {
    initialize?: Parameters<typeof initializeParams>[0] | false;
    /** Registers what else the kernel's end serves. */
    prepare?(kernel: Connection): void;
  } = {},
) {
  const [left, right] = createMemoryPair();
  const kernel = new Connection({ transport: left, side: "kernel" });
  const progress: Progress[] = [];
  kernel.onNotification(ToolsProgress, (delta, raw) => {
    progress.push(raw === undefined ? delta : { ...delta, raw: Buffer.concat(raw) });
  });
  options.prepare?.(kernel);
  kernel.listen();
  const served = servePlugin(plugin, right);
  if (options.initialize !== false) {
    await kernel.request(PluginInitialize, initializeParams(options.initialize));
  }
  return {
    kernel,
    progress,
    served,
    stop: async () => {
      await kernel.notify(PluginShutdown, {});
      await served;
    },
  };
}
