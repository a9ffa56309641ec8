import { type ConnectionState, CookieClient } from "./cookie-client.ts";
import { checkDaemonToken, checkDaemonUrl, DEFAULT_DAEMON_URL } from "./daemon-address.ts";

export interface ConnectDaemonOptions {
  /** `ws://127.0.0.1:7419/ws` when absent. */
  readonly url?: string;
  /** The first line that the daemon printed. */
  readonly token: string;
  /** Told when the connection is lost, is there again, or is gone for good. */
  onConnection?(state: ConnectionState): void;
}

/**
 * A client of the daemon that listens at an address of this machine. Rejects with `invalid_address` before a socket is
 * opened (D-007), with `refused` when the daemon does not take the token, with `unreachable` when there is none, and
 * with `invalid_params` when it speaks another version. Later it reconnects by itself (D-128).
 */
export async function connectDaemon(options: ConnectDaemonOptions): Promise<CookieClient> {
  const url = checkDaemonUrl(options.url ?? DEFAULT_DAEMON_URL);
  const token = checkDaemonToken(options.token);
  const { connectWebSocket } = await import("../rpc/websocket-transport.ts");
  return CookieClient.connectAgain(
    (signal) => connectWebSocket({ url, token, signal }),
    options.onConnection,
  );
}
