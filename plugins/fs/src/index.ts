import { definePlugin, serve } from "@cookie-agent/sdk/plugin";
import { useScratch } from "./attach-file.ts";
import { edit } from "./edit.ts";
import { read } from "./read.ts";
import { write } from "./write.ts";

await serve(
  definePlugin({
    name: "builtin.fs",
    version: "0.1.0",
    group: "core",
    env: { inherit: "*" },
    capabilities: { host: ["artifacts.read", "media"] },
    tools: { read, write, edit },
    start: ({ paths, services }) => useScratch(services.includes("media") ? paths.scratch : null),
  }),
);
