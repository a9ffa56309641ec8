export { CookieClient, type SessionNews, type SubscribeOptions } from "./cookie-client.ts";
