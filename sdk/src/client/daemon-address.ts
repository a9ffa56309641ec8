import { CookieError } from "../protocol/errors.ts";

/** Where a daemon listens unless it was told otherwise (D-001). */
export const DEFAULT_DAEMON_URL = "ws://127.0.0.1:7419/ws";

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** The address of a daemon, as it is connected to. Throws `invalid_address`, with what is wrong with it (D-007). */
export function checkDaemonUrl(text: string): string {
  if (!URL.canParse(text)) throw invalid(`it is no URL; a daemon's is like ${DEFAULT_DAEMON_URL}`);
  const url = new URL(text);
  if (url.protocol !== "ws:" && url.protocol !== "wss:") {
    throw invalid("it has to begin with ws:// or wss://");
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid("it may hold no credentials; the token goes with --token or COOKIE_DAEMON_TOKEN");
  }
  if (!LOOPBACK.test(url.hostname)) {
    throw invalid(
      "its host has to be this machine: localhost, 127.0.0.1 or [::1]; use a tunnel to reach another one",
    );
  }
  if (url.pathname !== "/ws") throw invalid("its path has to be /ws");
  if (text.includes("#")) throw invalid("it may have no fragment");
  if (text.includes("?")) throw invalid("it may have no query");
  return url.href;
}

/** Throws `invalid_address` for what cannot be a daemon's token; never repeats it (D-007). */
export function checkDaemonToken(token: string): string {
  if (TOKEN.test(token)) return token;
  throw new CookieError(
    "invalid_address",
    "the token of a daemon is the 43 letters, digits, - and _ of the first line that it printed",
  );
}

function invalid(problem: string): CookieError {
  return new CookieError("invalid_address", `the URL of a daemon: ${problem}`);
}
