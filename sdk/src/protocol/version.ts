/** The one version of the plugin wire protocol this build speaks (E-020). */
export const PLUGIN_PROTOCOL_VERSION = "0.1.0";

/** The one version of the client protocol this build speaks; no negotiation (D-021). */
export const CLIENT_PROTOCOL_VERSION = 20;

/** Bytes of one encoded line, LF excluded, in either direction of a plugin pipe (E-002). */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;

/** Bytes of one encoded message between a client and a daemon, in either direction (D-010, D-151). */
export const MAX_CLIENT_FRAME_BYTES = 16 * 1024 * 1024;

/** Unacknowledged progress text a plugin in a shared process may have under way per call (E-103). */
export const PROGRESS_WINDOW_BYTES = 1024 * 1024;
