import { programManifest, samples, type Template, tryCommands } from "./template-file.ts";

const source = (name: string) => `#!/usr/bin/env python3
"""A cookie agent plugin: one JSON object per line in, one per line out."""
import json
import sys


def send(**frame):
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def call(params):
    return {"content": str(len(params["arguments"]["text"].split()))}


for line in sys.stdin:
    if not line.strip():
        continue
    frame = json.loads(line)
    method, id = frame.get("method"), frame.get("id")
    if method == "plugin/shutdown":
        break
    if method is None or id is None:
        continue  # an answer or a notification
    if method == "plugin/initialize":
        send(id=id, result={"protocol_version": "0.1.0", "name": ${JSON.stringify(name)}, "version": "0.1.0"})
    elif method == "plugin/tools/call":
        try:
            send(id=id, result=call(frame["params"]))
        except Exception as error:
            send(id=id, error={"code": -32000, "message": str(error), "data": {"code": "execution_failed"}})
    else:
        send(id=id, error={"code": -32601, "message": "no such method"})
`;

/** Standard library only. One call at a time, which is what the manifest says. */
export function pythonTemplate(name: string): Template {
  return {
    files: [
      programManifest(name, "./main.py", 1),
      samples(name, { requires: ["python3"] }),
      { path: "main.py", text: source(name), executable: true },
    ],
    next: tryCommands(name),
  };
}
