import { programManifest, samples, type Template, tryCommands } from "./template-file.ts";

const source = (name: string) => `#!/bin/sh
# A cookie agent plugin: one JSON object per line in, one per line out. Needs jq.

while IFS= read -r line || [ -n "$line" ]; do
  get() { printf '%s' "$line" | jq "$@"; }
  id=$(get -c 'if has("id") then .id else empty end')
  case $(get -r '.method // ""') in
    plugin/initialize) result='{"protocol_version":"0.1.0","name":"${name}","version":"0.1.0"}' ;;
    plugin/tools/call) result=$(get -c '{content: (.params.arguments.text | [splits("\\\\s+") | select(. != "")] | length | tostring)}') ;;
    plugin/shutdown) exit 0 ;;
    *)
      [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\\n' "$id"
      continue
      ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$result"
done
`;

/** POSIX sh and jq; one call at a time. */
export function shellTemplate(name: string): Template {
  return {
    files: [
      programManifest(name, "./main.sh", 1),
      samples(name, { requires: ["jq"] }),
      { path: "main.sh", text: source(name), executable: true },
    ],
    next: tryCommands(name),
  };
}
