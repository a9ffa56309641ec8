import type { EventPayload, StoredEvent } from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { History } from "../../../../kernel/src/run/history.ts";
import { byteLengthOf } from "../../../../kernel/src/run/message-size.ts";

const MODEL = { model: "custom.test/model", variant: null };

/** A log that is folded as it grows. */
class Log {
  readonly history = new History();
  seq = 0;
  turns = 0;

  add(payload: unknown): number {
    this.seq += 1;
    this.history.apply({ seq: this.seq, payload } as unknown as StoredEvent<EventPayload>);
    return this.seq;
  }

  say(input: string): number {
    return this.add({ type: "user_input_submitted", input });
  }

  turn(id: string, output: string, attachments: unknown[] = []): number {
    this.turns += 1;
    const call = { type: "tool_call", id, name: "read", input: { filePath: id }, raw_input: null };
    const seq = this.add({
      type: "model_turn_committed",
      model_turn_seq: this.turns,
      resolved_model: MODEL,
      turn: { content: [call] },
    });
    this.add({
      type: "tool_call_terminated",
      owner: { model_turn_seq: this.turns, content_index: 0 },
      outcome: "completed",
      result: { output, metadata: {}, attachments },
      error: null,
    });
    return seq;
  }

  checkpoint(summary: string, recentFromSeq?: number): number {
    return this.add({
      type: "context_checkpoint_committed",
      checkpoint: { type: "internal_summary", summary },
      boundaries: {
        source_through_seq: this.seq,
        prior_checkpoint_seq: this.history.checkpoint?.seq ?? null,
        ...(recentFromSeq !== undefined && { recent_from_seq: recentFromSeq }),
      },
    });
  }

  get roles(): string[] {
    return this.history.messages.map(({ role }) => role);
  }

  get text(): string {
    return JSON.stringify(this.history.messages);
  }
}

describe("a history with a checkpoint", () => {
  test("[S-221] is the summary, files that came back, the recent messages, then what follows", () => {
    const log = new Log();
    log.say("first question");
    log.turn("a", "old output");
    const recent = log.turn("b", "new output");
    log.checkpoint("what happened", recent);
    log.add({
      type: "context_rehydrated",
      files: [{ path: "a.txt", content: "text", byte_length: 10, sha256: "x" }],
    });
    log.say("second question");
    expect(log.roles).toEqual(["user", "user", "assistant", "tool", "user"]);
    const [summary, files, , result, next] = log.history.messages;
    expect(JSON.stringify(summary)).toContain("what happened");
    expect(JSON.stringify(files)).toMatch(/a\.txt.*the first 4 of 10 bytes.*text/);
    expect(JSON.stringify(result)).toContain("new output");
    expect(next).toEqual({ role: "user", text: "second question" });
    expect(log.text).not.toContain("old output");
    expect(log.text).not.toContain("first question");
    expect(log.history.checkpoint?.rehydrated).toEqual(["a.txt"]);
  });

  test("[S-221] keeps the messages that stay as the same objects", () => {
    const log = new Log();
    log.say("question");
    const recent = log.turn("a", "output");
    const before = log.history.messages.slice(1);
    log.checkpoint("summary", recent);
    const after = log.history.messages.slice(1);
    expect(after.map((message, index) => message === before[index])).toEqual([true, true]);
  });

  test("[S-221] replaces an earlier summary by a later one", () => {
    const log = new Log();
    log.say("question");
    log.checkpoint("summary one", log.turn("a", "of a"));
    const recent = log.turn("b", "of b");
    log.checkpoint("summary two", recent);
    expect(log.text).not.toContain("summary one");
    expect(log.text).not.toContain("of a");
    expect(log.roles).toEqual(["user", "assistant", "tool"]);
  });

  test("[S-219] takes no notice of a window of a provider's own", () => {
    const log = new Log();
    log.say("question");
    log.turn("a", "output");
    const before = log.history.messages;
    log.add({
      type: "context_checkpoint_committed",
      checkpoint: { type: "native_window", window: { items: [] } },
      boundaries: { source_from_seq: 1, source_through_seq: log.seq, prior_checkpoint_seq: null },
    });
    expect(log.history.messages).toBe(before);
    expect(log.history.checkpoint).toBeNull();
  });

  test("[T-161] drops the media of what it keeps", () => {
    const log = new Log();
    log.say("question");
    const image = {
      mime_type: "image/png",
      filename: "a.png",
      byte_length: 1,
      sha256: "x",
      reference: "artifact://x",
    };
    const recent = log.turn("a", "an image", [image]);
    expect(log.history.hasMedia).toBe(true);
    log.checkpoint("summary", recent);
    expect(log.history.hasMedia).toBe(false);
    expect(log.text).toMatch(/an image.*attachment a\.png was dropped/);
    expect(log.text).not.toContain("attachments");
  });

  test("knows the size of its messages, whatever happened", () => {
    const step = fc.constantFrom("say", "turn", "checkpoint", "keep");
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const log = new Log();
        let recent = 0;
        steps.forEach((each, index) => {
          if (each === "say") recent = log.say(`words ${index}`);
          else if (each === "turn") recent = log.turn(`call${index}`, "x".repeat(index * 7));
          else
            log.checkpoint(`summary ${index}`, each === "keep" && recent > 0 ? recent : undefined);
          const { messages, facts, byteLength } = log.history;
          expect(facts).toHaveLength(messages.length);
          expect(byteLength).toBe(messages.reduce((sum, one) => sum + byteLengthOf(one), 0));
          messages.forEach((message, at) => {
            if (message.role === "tool") expect(messages[at - 1]?.role).toBe("assistant");
          });
        });
      }),
    );
  });
});
