import type { PermissionMode } from "@cookie-agent/sdk/protocol";
import { DEFAULT_PERMISSION_MODE } from "../permission/permission-mode.ts";

/** What is true of a session only while this process runs: its permission mode and who is watching (S 6.6). */
export class SessionPresence {
  mode: PermissionMode = DEFAULT_PERMISSION_MODE;
  #interactiveClients = 0;

  /** True while an interactive client is attached. */
  get attended(): boolean {
    return this.#interactiveClients > 0;
  }

  attach(): void {
    this.#interactiveClients += 1;
  }

  detach(): void {
    this.#interactiveClients -= 1;
  }
}
