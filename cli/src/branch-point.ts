import { CookieError, type StoredEvent, VisibleBranch } from "@cookie-agent/sdk/protocol";
import { integer } from "@oclif/core/flags";

/** The two ways to name the event that a branch goes back to. */
export const branchPointFlags = {
  through: integer({
    description: "the last event that stays; `cookie session show` numbers them",
    min: 1,
    exclusive: ["runs"],
  }),
  runs: integer({ description: "leave out this many runs from the end", min: 1 }),
};

/** The event before the `runs`th run from the end that counts. Throws `invalid_sequence` when there are fewer. */
export function beforeRuns(events: readonly StoredEvent[], runs: number): number {
  const branch = new VisibleBranch();
  for (const { payload, seq } of events) {
    if (payload.type === "session_reverted") branch.revert(payload.through_seq, seq);
  }
  const starts = events.filter(
    ({ payload, seq }) => payload.type === "run_started" && branch.isVisible(seq),
  );
  const start = starts.at(-runs);
  if (start !== undefined) return start.seq - 1;
  throw new CookieError(
    "invalid_sequence",
    `the session has ${starts.length} ${starts.length === 1 ? "run" : "runs"}, not ${runs}`,
  );
}
