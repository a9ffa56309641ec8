import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type SessionId, SessionList, type StoredEvent } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { openTestKernel, type TestKernel } from "../support/open-test-kernel.ts";
import { findLogs } from "../support/session-log.ts";
import { lastRequest } from "./support/intact-session.ts";
import { pairingProblems } from "./support/paired-results.ts";
import { recordScript } from "./support/record-script.ts";
import { OPERATIONS } from "./support/stored-session.ts";

const RUNS = process.env["COOKIE_FAULT_RUNS"] === "all" ? 2000 : 16;
const LF = Buffer.from("\n");

/** A line of a log and what became of it. */
interface Line {
  readonly seq: number;
  bytes: Buffer;
  isLost: boolean;
}

type Damage = (line: Line, next: Line | undefined, share: number) => void;

const part = (line: Line, share: number) =>
  line.bytes.subarray(0, 1 + Math.floor(share * (line.bytes.byteLength - 3)));
const body = ({ bytes }: Line) => bytes.subarray(0, -1);

const damages: Readonly<Record<string, Damage>> = {
  "cut short": (line, _next, share) => {
    line.bytes = Buffer.concat([part(line, share), LF]);
    line.isLost = true;
  },
  removed: (line) => {
    line.bytes = Buffer.alloc(0);
    line.isLost = true;
  },
  "joined with the next": (line, next) => {
    line.bytes = body(line);
    line.isLost = true;
    // the copy at the end of the line is read
    if (next === undefined) line.isLost = true;
  },
  "of an unknown type": (line) => {
    line.bytes = Buffer.from(
      line.bytes.toString().replace(/"type":"[^"]+"/, '"type":"of_tomorrow"'),
    );
    line.isLost = true;
  },
  "no object": (line) => {
    line.bytes = Buffer.from("[1,2]\n");
    line.isLost = true;
  },
  "zeros before it": (line, _next, share) => {
    line.bytes = Buffer.concat([Buffer.alloc(Math.floor(share * 600) + 1), line.bytes]);
  },
  "zeros as a line": (line, _next, share) => {
    line.bytes = Buffer.concat([Buffer.alloc(Math.floor(share * 600) + 1), LF, line.bytes]);
  },
  "blank lines": (line) => {
    line.bytes = Buffer.concat([LF, LF, line.bytes]);
  },
  "begun twice on a line": (line, _next, share) => {
    line.bytes = Buffer.concat([part(line, share), line.bytes]);
  },
  "begun twice on two lines": (line, _next, share) => {
    line.bytes = Buffer.concat([part(line, share), LF, line.bytes]);
  },
  doubled: (line) => {
    line.bytes = Buffer.concat([line.bytes, line.bytes]);
  },
  "zeros in its place": (line) => {
    line.bytes = Buffer.concat([Buffer.alloc(line.bytes.byteLength - 1), LF]);
    line.isLost = true;
  },
  "of an earlier time": (line) => {
    line.bytes = Buffer.from(
      line.bytes
        .toString()
        .replace(/"timestamp":"[^"]+"/, '"timestamp":"2001-01-01T00:00:00.000Z"'),
    );
  },
};

const plan = fc.record({
  damaged: fc.uniqueArray(
    fc.record({
      at: fc.nat(),
      how: fc.constantFrom(...Object.keys(damages)),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    { minLength: 1, maxLength: 4, selector: ({ at }) => at % 50 },
  ),
  torn: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
});

describe("a log with any damage behind its beginning", () => {
  test("[damaged log: opening, append, recovery, artifact, settings, compaction, branch, removal] [S-051] [S-054] [S-056] [S-058] loads what is readable, says where the rest was, and goes on", {
    timeout: 600_000,
  }, async () => {
    const recorded = await readRecorded();
    await fc.assert(
      fc.asyncProperty(plan, async ({ damaged, torn }) => {
        const lines = recorded.lines.map(({ seq, bytes }): Line => ({ seq, bytes, isLost: false }));
        const rest = lines.slice(1);
        for (const { at, how, share } of damaged) {
          const index = at % rest.length;
          const line = rest[index];
          if (line !== undefined) damages[how]?.(line, rest[index + 1], share);
        }
        const last = lines.at(-1);
        if (torn !== null && last !== undefined && !last.isLost) {
          last.bytes = part(last, torn);
          last.isLost = true;
        }
        await expectReadable(recorded, lines);
      }),
      { numRuns: RUNS, examples: SEEDS, endOnFailure: process.env["NOSHRINK"] !== undefined },
    );
  });
});

/** Damages that once were read wrongly. */
const SEEDS: [{ damaged: { at: number; how: string; share: number }[]; torn: number | null }][] =
  [];

async function readRecorded() {
  const { project, server, base, known } = await recordScript();
  const sessionId = known[0]?.known.sessionId as SessionId;
  const log = (await findLogs({ stateDir: base })).find((path) => path.includes(sessionId)) ?? "";
  const kernel = await openTestKernel({ on: { project, server }, dataDir: base });
  const events = await kernel.client.readEvents(sessionId);
  await kernel.close();
  const texts = (await readFile(log, "utf8")).split(/(?<=\n)/);
  const lines = texts.map((text, index) => ({ seq: index + 1, bytes: Buffer.from(text) }));
  expect(lines).toHaveLength(events.length);
  return { project, server, base, log, sessionId, events, lines };
}

async function expectReadable(
  { project, server, base, log, sessionId, events }: Awaited<ReturnType<typeof readRecorded>>,
  lines: readonly Line[],
): Promise<void> {
  const dataDir = join(project.home, "damaged");
  await rm(dataDir, { recursive: true, force: true });
  await cp(base, dataDir, { recursive: true });
  const damagedLog = dataDir + log.slice(base.length);
  const bytes = Buffer.concat(lines.map((line) => line.bytes));
  await writeFile(damagedLog, bytes);
  const kernel = await openTestKernel({ on: { project, server }, dataDir });
  try {
    const kept = lines.filter(({ isLost }) => !isLost).map(({ seq }) => seq);
    const read = await kernel.client.readEvents(sessionId);
    expect(read.map(({ seq }) => seq)).toEqual(kept);
    const vague = vagueSeqs(lines);
    expect(read.map((event) => essence(event, vague))).toEqual(
      kept.map((seq) => essence(events[seq - 1], vague)),
    );
    expect(await readFile(damagedLog)).toEqual(bytes);

    const { end } = await kernel.run("Next.", { session: sessionId });
    expect(end.type).toBe("run_completed");
    expect(pairingProblems(lastRequest(server))).toEqual([]);
    const after = await kernel.client.readEvents(sessionId);
    expect(after.slice(0, kept.length)).toEqual(read);
    const times = after.map(({ timestamp }) => timestamp);
    expect(times.slice(kept.length)).toEqual(times.slice(kept.length).sort());
    await expectReported(kernel, sessionId, lines);
    // whatever was lost, all that can be done to a session is done
    for (const operation of ["settings", "artifact", "compaction", "branch", "removal"] as const) {
      await OPERATIONS[operation](kernel, sessionId);
    }
  } finally {
    await kernel.close();
  }
}

/** Lines behind a lost one that leave out their run: it may have been the lost line that said it (S 2.1). */
function vagueSeqs(lines: readonly Line[]): ReadonlySet<number> {
  const vague = new Set<number>();
  let isVague = false;
  for (const { seq, bytes, isLost } of lines) {
    if (isLost) isVague = true;
    else if (/"run_id":[^{]*"payload":/.test(bytes.toString())) isVague = false;
    else if (isVague) vague.add(seq);
  }
  return vague;
}

/** What must be the same however its line was written; a turn that is lost takes the copy of its counts with it. */
function essence(event: StoredEvent | undefined, vague: ReadonlySet<number>): unknown {
  if (event === undefined) return undefined;
  const { seq, payload } = event;
  const run_id = vague.has(seq) ? "vague" : event.run_id;
  if (payload.type !== "model_usage_recorded") return { seq, run_id, payload };
  return { seq, run_id, payload: { ...payload, usage: null } };
}

/** Each lost event that something follows is named, by its number or in a range. */
async function expectReported(
  kernel: TestKernel,
  sessionId: SessionId,
  lines: readonly Line[],
): Promise<void> {
  const { sessions } = await kernel.client.request(SessionList, {});
  const session = sessions.find(({ session_id }) => session_id === sessionId);
  expect(session?.status).toBe("completed");
  const skipped = session?.skipped_events ?? [];
  const lastKept = lines.findLast(({ isLost }) => !isLost)?.seq ?? 0;
  const isNamed = (seq: number) =>
    skipped.some((entry) => {
      if ("seq" in entry && entry.seq === seq) return true;
      const [, first, last] = /^events (\d+) to (\d+) are missing$/.exec(entry.reason) ?? [];
      return first !== undefined && Number(first) <= seq && seq <= Number(last);
    });
  const unnamed = lines.filter(({ seq, isLost }) => isLost && seq < lastKept && !isNamed(seq));
  expect(unnamed.map(({ seq }) => seq)).toEqual([]);
}
