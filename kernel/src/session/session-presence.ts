import type { PermissionMode, SessionId } from "@cookie-agent/sdk/protocol";
import type { TreeModes } from "./tree-modes.ts";

/** What is true of a session only while this process runs: its permission mode and who is watching (S 6.6). */
export class SessionPresence {
  readonly #modes: TreeModes;
  readonly #rootSessionId: SessionId;
  #interactiveClients = 0;

  constructor(modes: TreeModes, rootSessionId: SessionId) {
    this.#modes = modes;
    this.#rootSessionId = rootSessionId;
  }

  /** That of the whole tree. */
  get mode(): PermissionMode {
    return this.#modes.of(this.#rootSessionId);
  }

  set mode(mode: PermissionMode) {
    this.#modes.set(this.#rootSessionId, mode);
  }

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
