export { type ConnectDaemonOptions, connectDaemon } from "./connect-daemon.ts";
export {
  type ConnectionState,
  CookieClient,
  type SessionNews,
  type SubscribeOptions,
} from "./cookie-client.ts";
