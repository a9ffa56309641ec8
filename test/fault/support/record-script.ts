import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { type ModelServer, startModelServer } from "../../support/model-server.ts";
import { configure, openTestKernel } from "../../support/open-test-kernel.ts";
import type { TempProject } from "../../support/temp-project.ts";
import { faultProject } from "./fault-project.ts";
import type { Known } from "./intact-session.ts";
import {
  SCRIPT_AGENTS,
  type ScriptedGates,
  ScriptedSession,
  scriptAnswers,
} from "./scripted-session.ts";
import { type DiskChange, watchDisk } from "./watched-disk.mjs";

/** A project in which the script can be played, and a model that answers it. */
export async function scriptProject(): Promise<{
  project: TempProject;
  server: ModelServer;
  gates: ScriptedGates;
}> {
  const project = await faultProject();
  const server = await startModelServer();
  onTestFinished(() => server.close());
  const gates = scriptAnswers(server);
  await configure(project, server, { agents: SCRIPT_AGENTS });
  await project.write("note.txt", "a note\n");
  return { project, server, gates };
}

export interface Recording {
  readonly project: TempProject;
  readonly server: ModelServer;
  readonly base: string;
  readonly changes: DiskChange[];
  /** What commands had done before each change. */
  readonly marks: readonly string[];
  /** What the client knew when a change had happened, by the number of changes before. */
  readonly known: { readonly from: number; readonly known: Known }[];
}

/** The script once, with every change of the disk and what the client knew meanwhile. */
export async function recordScript(): Promise<Recording> {
  const { project, server, gates } = await scriptProject();
  const base = join(project.home, "recorded");
  mkdirSync(base);
  const changes: DiskChange[] = [];
  const marks: string[] = [];
  const readMarks = () => {
    const path = join(project.cwd, "marks");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  const stop = watchDisk(base, {
    before: () => {
      marks[changes.length] = readMarks();
    },
    after: (change) => void changes.push(change),
  });
  const kernel = await openTestKernel({ on: { project, server }, dataDir: base });
  const session = new ScriptedSession(kernel.client, gates);
  const known: Recording["known"] = [];
  session.onLearned = () => {
    const { seen, promised, forks, sessionId, grant } = session;
    const lists = { promised: [...promised], forks: [...forks] };
    const now = { seen: new Map(seen), ...lists, sessionId, grant };
    known.push({ from: changes.length, known: now });
  };
  await session.play();
  await kernel.close();
  stop();
  marks[changes.length] = readMarks();
  expect(session.refused).toEqual([]);
  // What the places of compaction and grants are about has happened.
  expect(session.promised.map(({ what }) => what)).toContain("compact");
  expect(session.grant).toBe("taken back");
  expect(changes.some(({ path }) => path.endsWith("grant-invalidations.jsonl"))).toBe(true);
  return { project, server, base, changes, known, marks };
}

/** What the client knew before so many changes at most had happened. */
export function knownAt({ known }: Recording, count: number): Known {
  const before = known.findLast(({ from }) => from <= count)?.known;
  return (
    before ?? {
      seen: new Map(),
      promised: [],
      forks: [],
      sessionId: known[0]?.known.sessionId,
      grant: "none",
    }
  );
}
