import { RAL } from "vscode-jsonrpc";

/**
 * Gives the JSON-RPC library what it wants of its surroundings: timers and a place for messages. Its own Node entry
 * would do that too, but loads built-in modules with `require`, which a plugin bundled as an ES module does not have.
 * Framing is ours (line-reader, line-writer), so the parts for its own streams are never asked for.
 */
RAL.install({
  timer: {
    setTimeout(callback, ms, ...args: unknown[]) {
      const handle = setTimeout(callback, ms, ...args);
      return { dispose: () => clearTimeout(handle) };
    },
    setImmediate(callback, ...args: unknown[]) {
      const handle = setImmediate(callback, ...args);
      return { dispose: () => clearImmediate(handle) };
    },
    setInterval(callback, ms, ...args: unknown[]) {
      const handle = setInterval(callback, ms, ...args);
      return { dispose: () => clearInterval(handle) };
    },
  },
  console,
  crypto,
  messageBuffer: { create: unused },
  applicationJson: {
    encoder: { name: "application/json", encode: unused },
    decoder: { name: "application/json", decode: unused },
  },
});

function unused(): never {
  throw new Error("frames are read and written by line transports");
}
