import type { PermissionMode, SessionId } from "@cookie-agent/sdk/protocol";
import { DEFAULT_PERMISSION_MODE } from "../permission/permission-mode.ts";

/** The permission modes of this process: one for all sessions of a tree, known by its root, never stored (S 6.6). */
export class TreeModes {
  /** Only those that differ from the mode that a process starts in. */
  readonly #modes = new Map<SessionId, PermissionMode>();

  of(rootSessionId: SessionId): PermissionMode {
    return this.#modes.get(rootSessionId) ?? DEFAULT_PERMISSION_MODE;
  }

  set(rootSessionId: SessionId, mode: PermissionMode): void {
    if (mode === DEFAULT_PERMISSION_MODE) this.#modes.delete(rootSessionId);
    else this.#modes.set(rootSessionId, mode);
  }
}
