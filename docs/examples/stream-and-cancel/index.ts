import { setTimeout as pause } from "node:timers/promises";
import { definePlugin, defineTool, serve } from "@cookie-agent/sdk/plugin";
import * as z from "zod";

await serve(
  definePlugin({
    name: "countdown",
    version: "1.0.0",
    tools: {
      countdown: defineTool({
        description: "Counts down to zero, one number a line.",
        parameters: z.strictObject({
          from: z.int().min(0).max(100_000),
          pause_ms: z.int().min(0).max(1000).default(0),
        }),
        permissionName: "countdown",
        async call({ args, progress, signal }) {
          for (let left = args.from; left >= 0; left -= 1) {
            // What was printed so far stays in the record, whatever happens next.
            await progress({ output: `${left}\n`, message: `${left} to go` });
            // Ends at once when the call is cancelled or timed out; the SDK answers the cancel.
            await pause(args.pause_ms, undefined, { signal });
          }
          return { streamed: true };
        },
      }),
    },
  }),
);
