import { definePlugin, serve } from "@cookie-agent/sdk/plugin";

/** What no command may contain; from the entry's `config.deny`. */
let denied = [];

await serve(
  definePlugin({
    name: "guard",
    version: "1.0.0",
    configSchema: {
      type: "object",
      properties: { deny: { type: "array", items: { type: "string", minLength: 1 } } },
      required: ["deny"],
      additionalProperties: false,
    },
    start({ config }) {
      denied = config.deny;
    },
    hooks: {
      tool_before_call({ tool, arguments: args }) {
        if (tool !== "bash") return undefined;
        const words = String(args.command).split(/\s+/).join(" ");
        const found = denied.find((text) => words.includes(text));
        if (found === undefined) return undefined;
        return {
          action: "block",
          reason: `the command contains "${found}"`,
          message_to_model: `Commands with "${found}" are not run here. Leave that step to the user.`,
        };
      },
    },
  }),
);
