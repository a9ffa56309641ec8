#!/bin/sh
# The checksum and size of a file, in POSIX sh with jq.

while IFS= read -r line || [ -n "$line" ]; do
  get() { printf '%s' "$line" | jq "$@"; }
  id=$(get -c 'if has("id") then .id else empty end')
  case $(get -r '.method // ""') in
    plugin/initialize) result='{"protocol_version":"0.1.0","name":"checksum","version":"1.0.0"}' ;;
    plugin/tools/call)
      # jq -j writes no newline; x keeps those that belong to the name.
      file=$(get -j '.params.cwd + "/" + .params.arguments.path'; printf x)
      if out=$(cksum <"${file%x}" 2>&1); then is_error=false; else is_error=true; fi
      result=$(jq -cn --arg out "$out" --argjson is_error "$is_error" '{content: $out, is_error: $is_error}')
      ;;
    plugin/shutdown) exit 0 ;;
    *)
      [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
      continue
      ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
