import { utf8Length } from "@cookie-agent/sdk/protocol";
import type { TableReader } from "./table-reader.ts";
import { hasControl } from "./text-rules.ts";

const AUTHORITY = /^(https?):\/\/([^/\\?#\s]+)(\/[^\\?#\s]*)?$/i;
const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\]):[0-9]{1,5}$/i;

/**
 * An absolute https URL without userinfo, query and fragment; its trailing slash is taken off.
 * @param loopbackPath Allows http on this machine, with a port, at exactly this path.
 */
export function decodeEndpoint(
  reader: TableReader,
  key: string,
  loopbackPath?: string,
): string | undefined {
  const text = reader.string(key);
  if (text === undefined) return undefined;
  const problem = endpointProblem(text, loopbackPath);
  if (problem === undefined) return text.replace(/\/+$/, "");
  throw reader.fail("provider_invalid", key, `invalid_endpoint: ${problem}`);
}

function endpointProblem(text: string, loopbackPath: string | undefined): string | undefined {
  if (utf8Length(text) > 2048) return "must have at most 2048 bytes";
  const match = AUTHORITY.exec(text);
  if (match === null || hasControl(text) || !URL.canParse(text)) {
    return "expected an absolute URL without query and fragment";
  }
  const [, scheme = "", authority = "", path = ""] = match;
  if (authority.includes("@")) return "must not hold user information";
  if (scheme.toLowerCase() === "https") return undefined;
  if (loopbackPath === undefined) return "must be https";
  if (!LOOPBACK.test(authority)) {
    return "must be https; http is for localhost, 127.0.0.1 and [::1] with a port";
  }
  const expected = loopbackPath.replace(/\/$/, "");
  return path.replace(/\/$/, "") === expected
    ? undefined
    : `on this machine the path must be ${loopbackPath}`;
}
