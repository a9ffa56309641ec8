import type { SessionId, SkippedEvent, StoredEvent } from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readLog } from "../../../../kernel/src/event/read-log.ts";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { diagnostic, draft, linesOf, RunScript, sessionCreated } from "./event-fixtures.ts";

const sessionId = createId<SessionId>();

interface Reading {
  events: StoredEvent[];
  seqs: number[];
  skipped: SkippedEvent[];
  degraded: string[];
  completeByte: number;
  nextSeq: number;
}

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

async function read(content: string | Uint8Array, chunkBytes = 4096): Promise<Reading> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const reading: Reading = {
    events: [],
    seqs: [],
    skipped: [],
    degraded: [],
    completeByte: -1,
    nextSeq: -1,
  };
  for await (const batch of readLog(inChunks(bytes, chunkBytes), sessionId)) {
    for (const item of batch) {
      if (item.kind === "event") {
        reading.events.push(item.event);
        reading.seqs.push(item.event.seq);
        reading.degraded.push(...item.degraded);
      } else if (item.kind === "skipped") {
        reading.skipped.push(item.skipped);
      } else {
        reading.completeByte = item.completeByte;
        reading.nextSeq = item.nextSeq;
      }
    }
  }
  return reading;
}

function log(count: number): string[] {
  const rest = Array.from({ length: count - 1 }, (_, index) => diagnostic(`event ${index + 2}`));
  return linesOf(sessionId, [sessionCreated(), ...rest]);
}

const text = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join("");
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const replaced = (lines: readonly string[], index: number, line: string) =>
  lines.map((each, at) => (at === index ? line : each));

function put(target: unknown, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  let parent: object = Object(target) as object;
  for (const key of keys) parent = Object(Reflect.get(parent, key)) as object;
  if (value === undefined) Reflect.deleteProperty(parent, last);
  else Reflect.set(parent, last, value);
}

describe("damage in the middle", () => {
  test("[S-051] [B097] a run of NUL bytes as a line costs nothing and is reported with its offset", async () => {
    const lines = log(4);
    const content = text([...lines.slice(0, 2), "\0".repeat(400), ...lines.slice(2)]);
    const reading = await read(content);
    expect(reading.seqs).toEqual([1, 2, 3, 4]);
    const offset = Buffer.byteLength(text(lines.slice(0, 2)));
    expect(reading.skipped).toEqual([
      { line: 3, reason: `400 NUL bytes in the line at byte ${offset}` },
    ]);
  });

  test("[S-051] NUL bytes glued to a record leave the record readable", async () => {
    const lines = log(3);
    const reading = await read(text(replaced(lines, 1, `${"\0".repeat(64)}${lines[1]}\0`)));
    expect(reading.seqs).toEqual([1, 2, 3]);
    expect(reading.skipped).toHaveLength(1);
  });

  test("[S-051] [B098] line 500 of 1000 cut in the middle costs one event, named by its seq", async () => {
    const lines = log(1000);
    const reading = await read(text(replaced(lines, 499, (lines[499] ?? "").slice(0, 150))));
    expect(reading.seqs).toEqual(upTo(1000).filter((seq) => seq !== 500));
    expect(reading.skipped).toHaveLength(1);
    expect(reading.skipped).toMatchObject([{ seq: 500 }]);
  });

  test("[S-051] a broken line whose seq is gone is named by its line number", async () => {
    const lines = log(3);
    const reading = await read(text(replaced(lines, 1, '{"session_id":"zz')));
    expect(reading.seqs).toEqual([1, 3]);
    expect(reading.skipped).toMatchObject([{ line: 2 }, { seq: 2 }]);
  });

  test.for([
    ["not JSON", "nonsense"],
    ["not an object", "42"],
    ["nothing but null", "null"],
    [
      "an unknown envelope key",
      (line: string) => line.replace('{"session_id"', '{"x":1,"session_id"'),
    ],
    ["a run_id that is none", (line: string) => line.replace('"run_id":null,', '"run_id":7,')],
    ["another session", (line: string) => line.replace(sessionId, createId())],
    ["an unknown type", (line: string) => line.replace("plugin_diagnostic", "from_the_future")],
    ["a broken required field", (line: string) => line.replace('"count":1', '"count":"one"')],
  ] as const)("[S-051] [S-036] a line with %s is skipped", async ([, damage]) => {
    const lines = log(3);
    const line = typeof damage === "string" ? damage : damage(lines[1] ?? "");
    const reading = await read(text(replaced(lines, 1, line)));
    expect(reading.seqs).toEqual([1, 3]);
    expect(reading.skipped.length).toBeGreaterThan(0);
    expect(reading.nextSeq).toBe(4);
  });

  test("[S-058] the next seq is above a skipped one", async () => {
    const lines = log(3);
    const future = (lines[2] ?? "").replace("plugin_diagnostic", "from_the_future");
    expect((await read(text(replaced(lines, 2, future)))).nextSeq).toBe(4);
  });

  test("[S-058] a torn line cannot push the next seq out of reach", async () => {
    const reading = await read(`${text(log(2))}{"seq":9007199254740991,"x\n`);
    expect(reading.nextSeq).toBe(3);
  });

  test("[S-054] a contiguous run of missing events is one diagnostic", async () => {
    const lines = log(9);
    const reading = await read(
      text([...lines.slice(0, 2), ...lines.slice(5, 6), ...lines.slice(8)]),
    );
    expect(reading.seqs).toEqual([1, 2, 6, 9]);
    expect(reading.skipped).toEqual([
      { seq: 3, reason: "events 3 to 5 are missing" },
      { seq: 7, reason: "events 7 to 8 are missing" },
    ]);
  });

  test("[S-055] an event whose seq does not rise is corruption", async () => {
    const lines = log(3);
    const swapped = text([lines[0] ?? "", lines[2] ?? "", lines[1] ?? ""]);
    await expect(read(swapped)).rejects.toMatchObject({
      code: "storage_failed",
      message: expect.stringMatching(/event 2 follows event 3 \(line 3\)$/),
    });
  });

  test("[S-050] a log without a readable session_created cannot be opened", async () => {
    for (const content of [text(log(3).slice(1)), text(["{torn", ...log(3).slice(1)]), ""]) {
      await expect(read(content)).rejects.toMatchObject({
        code: "storage_failed",
        message: expect.stringMatching(/does not begin with .* session_created \(line 1\)$/),
      });
    }
  });
});

describe("partial records followed by their copy", () => {
  const lines = log(4);
  const whole = lines[2] ?? "";

  test.for([1, 5, 20, 60, 100, 140, 200])(
    "[B101] the first %i bytes of a record, then the record on the same line",
    async (bytes) => {
      const reading = await read(text(replaced(lines, 2, `${whole.slice(0, bytes)}${whole}`)));
      expect(reading).toMatchObject({ seqs: [1, 2, 3, 4], skipped: [] });
    },
  );

  test.for([1, 5, 20, 60, 100, 140, 200])(
    "[B101] the first %i bytes of a record, then the record on the next line",
    async (bytes) => {
      const reading = await read(text(replaced(lines, 2, `${whole.slice(0, bytes)}\n${whole}`)));
      expect(reading).toMatchObject({ seqs: [1, 2, 3, 4], skipped: [] });
    },
  );

  test("[B101] a copy on the same line and once more on the next counts once", async () => {
    const half = whole.slice(0, 120);
    const reading = await read(text(replaced(lines, 2, `${half}${whole}\n${whole}`)));
    expect(reading).toMatchObject({ seqs: [1, 2, 3, 4], skipped: [] });
  });
});

describe("the end of the log", () => {
  test("[S-056] a torn last line is left out and marked for truncation", async () => {
    const content = text(log(3));
    const reading = await read(`${content}{"session_id":"`);
    expect(reading).toMatchObject({
      seqs: [1, 2, 3],
      skipped: [],
      completeByte: Buffer.byteLength(content),
      nextSeq: 4,
    });
  });

  test("[S-056] [B110] half a record, a newline and an empty line read like a torn tail", async () => {
    const content = text(log(3));
    const reading = await read(`${content}${(log(4)[3] ?? "").slice(0, 90)}\n\n`);
    expect(reading).toMatchObject({
      seqs: [1, 2, 3],
      skipped: [],
      completeByte: Buffer.byteLength(content),
    });
  });
});

describe("fields a reader can do without", () => {
  const run = new RunScript();
  const lines = linesOf(sessionId, [
    sessionCreated(),
    run.started(),
    run.attempt(),
    run.turn(),
    run.callStarted(),
    run.callEnded(),
  ]);
  /** The log with these places of one payload overwritten; undefined removes the field. */
  const damaged = (index: number, places: Record<string, unknown>) => {
    const event: unknown = JSON.parse(lines[index] ?? "");
    for (const [path, value] of Object.entries(places)) put(event, `payload.${path}`, value);
    return text(replaced(lines, index, JSON.stringify(event)));
  };

  test("[S-052] [S-053] a mistyped or absent one becomes null or absent and is not listed", async () => {
    const places = {
      error: 7,
      "result.display": [],
      "result.retained_output": undefined,
      "owner.provider_item_id": 4,
    };
    const reading = await read(damaged(5, places));
    expect(reading.skipped).toEqual([]);
    // What writers leave out is no damage.
    expect(reading.degraded.sort()).toEqual(["error", "owner.provider_item_id", "result.display"]);
    expect(reading.events[5]?.payload).toMatchObject({
      error: null,
      owner: { provider_item_id: null },
      result: { output: "text", display: null, retained_output: null },
    });
  });

  test("[S-052] the nearest field that may be null takes the damage of what lies inside", async () => {
    const reading = await read(damaged(5, { "result.output": 5 }));
    expect(reading.events[5]?.payload).toMatchObject({ result: null });
  });

  test("[S-052] fields of parts are found through the kind of the part", async () => {
    const reading = await read(damaged(3, { "turn.content.1.raw_input": 3 }));
    expect(reading.degraded).toEqual(["turn.content.1.raw_input"]);
  });

  test("[S-052] more than eight in one payload cost the event", async () => {
    const tokens =
      "input_tokens input_tokens_no_cache input_tokens_cache_read input_tokens_cache_write";
    const names = `${tokens} output_tokens output_tokens_text output_tokens_reasoning`.split(" ");
    const eight = Object.fromEntries([
      ...names.map((name) => [`turn.usage.${name}`, "many"]),
      ["turn.content.1.raw_input", 3],
    ]) as Record<string, unknown>;
    expect((await read(damaged(3, eight))).seqs).toEqual([1, 2, 3, 4, 5, 6]);
    const reading = await read(damaged(3, { ...eight, "turn.content.1.provider_item_id": 3 }));
    expect(reading.seqs).toEqual([1, 2, 3, 5, 6]);
    expect(reading.skipped).toMatchObject([{ seq: 4 }]);
  });

  test("[S-060] an unknown payload field is ignored", async () => {
    const reading = await read(damaged(4, { novelty: true }));
    expect(reading).toMatchObject({ seqs: upTo(6), degraded: [], skipped: [] });
  });
});

describe("laws", () => {
  const anyText = fc.string({ unit: "binary", maxLength: 60 });
  const logText = (texts: readonly string[]) => {
    const run = new RunScript();
    return linesOf(sessionId, [
      sessionCreated(),
      run.started(),
      ...texts.map((each) => draft({ type: "user_input_submitted", input: `.${each}` }, run.runId)),
    ]);
  };

  test("[S-051] what is cut off anywhere costs no complete line before it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyText, { maxLength: 8 }), fc.nat(), async (texts, cut) => {
        const lines = logText(texts);
        const bytes = Buffer.from(text(lines));
        const first = Buffer.byteLength(`${lines[0]}\n`);
        const kept = bytes.subarray(0, first + (cut % (bytes.byteLength - first)));
        const reading = await read(kept, 7);
        expect(reading.seqs).toEqual(upTo(kept.toString("latin1").split("\n").length - 1));
        expect(reading.skipped).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("[S-051] NUL runs between lines and torn copies before their record lose nothing", async () => {
    const damage = fc.record({
      at: fc.nat(),
      kind: fc.constantFrom("nul", "glued", "line"),
      size: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyText, { minLength: 1, maxLength: 8 }),
        fc.array(damage, { maxLength: 4 }),
        async (texts, damages) => {
          const lines = logText(texts);
          const damaged = lines.map((line, index) => {
            let before = "";
            for (const { at, kind, size } of damages) {
              if (at % lines.length !== index || before !== "") continue;
              const part = line.slice(0, 1 + (size % (line.length - 1)));
              if (kind === "nul") before = `${"\0".repeat(1 + (size % 500))}\n`;
              else before = kind === "glued" ? part : `${part}\n`;
            }
            return before + line;
          });
          const reading = await read(text(damaged), 113);
          expect(reading.seqs).toEqual(upTo(lines.length));
        },
      ),
      { numRuns: 100 },
    );
  });
});
