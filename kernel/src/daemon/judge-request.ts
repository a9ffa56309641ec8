import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";

/** What becomes of a request to the endpoint: a client's upgrade, the health check, or a refusal by its status. */
export type RequestVerdict = "client" | "health" | 401 | 403 | 404;

const LOCAL_HOST = /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?$/i;

/** The checks of D-004, D-005 and D-006, in their order: where it comes from, where it goes, whose it is. */
export function judgeRequest(request: IncomingMessage, token: string): RequestVerdict {
  const { host, origin, authorization } = request.headersDistinct;
  if (!isLoopback(request.socket.remoteAddress)) return 403;
  if (origin !== undefined) return 403;
  if (host?.length !== 1 || !LOCAL_HOST.test(host[0] ?? "")) return 403;
  if (request.url === "/healthz" && request.method === "GET") return "health";
  if (request.url !== "/ws") return 404;
  if (authorization?.length !== 1) return 401;
  return equalInConstantTime(authorization[0] ?? "", `Bearer ${token}`) ? "client" : 401;
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && isIP(address) === 4 && address.startsWith("127.");
}

/** Digests have one length, whatever was sent. */
function equalInConstantTime(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
