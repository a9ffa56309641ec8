/** What goes wrong; a title such as `[killed: append, sync] …` says that its test proves these two cells. */
export const FAULTS = {
  killed: "the kernel gets SIGKILL",
  "power lost": "the machine goes down: what was not synced is gone",
  signal: "the kernel is asked to end by a signal or its terminal",
  "disk full": "writes end with ENOSPC",
  "I/O error": "writes and syncs end with EIO",
  "read-only": "the disk takes no change any more (EROFS)",
  "two processes": "another process wants the same session tree",
  "clock jump": "the clock goes back or far ahead",
  "moved store": "the store is moved, copied, linked to or restored from a backup",
  "damaged log": "bytes on the disk are lost, doubled or overwritten",
  "storage gone": "files are removed or something else stands in their place",
  "plugin killed": "the process of a plugin gets SIGKILL",
} as const;

/** Where it strikes. */
export const PLACES = {
  publication: "a new session is put on the disk",
  append: "events are written",
  sync: "events are written and not yet durable",
  approval: "a call waits for an answer",
  "tool call": "a call runs",
  artifact: "large output is stored",
  metadata: "a cache is replaced",
  settings: "rules or the title of a session are changed",
  grants: "an answer is remembered for a tree of sessions or taken back",
  compaction: "a summary takes the place of a conversation",
  branch: "a session is reverted or forked",
  removal: "a session is removed",
  plugin: "a plugin is asked",
  recovery: "a session is being settled after a crash",
  opening: "a session is opened or listed",
} as const;

export type Fault = keyof typeof FAULTS;
export type Place = keyof typeof PLACES;

/**
 * Cells that cannot be struck, by fault. A signal is taken between two steps of the program, so only what waits for
 * somebody is struck by it; the death of a plugin strikes what it takes part in.
 */
export const IMPOSSIBLE: Readonly<Partial<Record<Fault, readonly Place[]>>> = {
  "power lost": ["plugin"],
  signal: [
    "publication",
    "append",
    "sync",
    "artifact",
    "metadata",
    "settings",
    "grants",
    "branch",
    "removal",
    "recovery",
    "opening",
  ],
  "disk full": ["plugin"],
  "I/O error": ["plugin"],
  "read-only": ["plugin"],
  "two processes": ["sync", "approval", "tool call", "plugin"],
  "clock jump": ["sync", "tool call", "artifact", "metadata", "plugin"],
  "moved store": ["publication", "sync", "approval", "tool call", "plugin"],
  "damaged log": ["publication", "sync", "approval", "tool call", "plugin"],
  "storage gone": ["sync", "approval", "plugin"],
  "plugin killed": [
    "publication",
    "append",
    "sync",
    "approval",
    "metadata",
    "settings",
    "grants",
    "branch",
    "removal",
    "recovery",
    "opening",
  ],
};

/** The cells that a title claims. Throws for a place that is not known. */
export function claimsOf(title: string): { fault: Fault; place: Place }[] {
  return [...title.matchAll(/\[([^\]:]+): ([^\]]+)\]/g)].flatMap(
    ([tag, fault = "", places = ""]) => {
      if (!isKey(FAULTS, fault)) return [];
      return places.split(", ").map((place) => {
        if (!isKey(PLACES, place)) throw new Error(`no place of the fault matrix: ${tag}`);
        return { fault, place };
      });
    },
  );
}

export function isKey<T extends object>(table: T, key: string): key is keyof T & string {
  return Object.hasOwn(table, key);
}
