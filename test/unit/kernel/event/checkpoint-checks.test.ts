import { describe, expect, test } from "vitest";
import { CheckpointChecks } from "../../../../kernel/src/event/checkpoint-checks.ts";
import { UndoJournal } from "../../../../kernel/src/event/undo-journal.ts";

type Payload = Parameters<CheckpointChecks["check"]>[0];

function checkpoint(changes: { boundaries?: object; budgets?: object; checkpoint?: object } = {}) {
  return {
    type: "context_checkpoint_committed",
    checkpoint: { type: "internal_summary", byte_length: 10, ...changes.checkpoint },
    boundaries: {
      source_from_seq: 2,
      source_through_seq: 8,
      input_through_seq: 2,
      prior_checkpoint_seq: null,
      ...changes.boundaries,
    },
    budgets: {
      input_tokens_before: 100,
      input_tokens_after: 50,
      max_summary_bytes: 10,
      ...changes.budgets,
    },
  } as unknown as Payload;
}

const REHYDRATED = { type: "context_rehydrated", files: [] } as unknown as Payload;

function open() {
  const journal = new UndoJournal();
  const checks = new CheckpointChecks(journal);
  const admit = (payload: Payload, seq: number, isQuiet = true) => {
    checks.check(payload, seq, isQuiet);
    checks.advance(payload, seq);
  };
  return { journal, checks, admit };
}

describe("a checkpoint", () => {
  test.for([
    { title: "makes nothing smaller", changes: { budgets: { input_tokens_after: 100 } } },
    { title: "stands for what comes later", changes: { boundaries: { source_through_seq: 9 } } },
    { title: "stands for nothing", changes: { boundaries: { source_from_seq: 9 } } },
    { title: "points to an unknown one", changes: { boundaries: { prior_checkpoint_seq: 3 } } },
    { title: "keeps what it does not stand for", changes: { boundaries: { recent_from_seq: 1 } } },
    { title: "has too long a summary", changes: { checkpoint: { byte_length: 11 } } },
  ])("[S-220] [S-048] that $title is not recorded", ({ changes }) => {
    const { checks } = open();
    expect(() => checks.check(checkpoint(changes), 9, true)).toThrow(/cannot be appended/);
  });

  test("[S-048] is not recorded while a model is asked", () => {
    expect(() => open().checks.check(checkpoint(), 9, false)).toThrow(/a model is being asked/);
  });

  test("[S-221] points back at the one before it", () => {
    const { admit } = open();
    admit(checkpoint(), 9);
    const next = { source_through_seq: 19, prior_checkpoint_seq: 9, recent_from_seq: 15 };
    expect(() => admit(checkpoint({ boundaries: next }), 20)).not.toThrow();
  });

  test("[S-222] has files come back once, and none behind a window of a provider's own", () => {
    const { admit } = open();
    expect(() => admit(REHYDRATED, 9)).toThrow(/no checkpoint waits/);
    admit(checkpoint(), 9);
    admit(REHYDRATED, 10);
    expect(() => admit(REHYDRATED, 11)).toThrow(/no checkpoint waits/);
    admit(checkpoint({ checkpoint: { type: "native_window" } }), 12);
    expect(() => admit(REHYDRATED, 13)).toThrow(/no checkpoint waits/);
  });

  test("[S-046] that could not be written is forgotten", () => {
    const { journal, admit } = open();
    admit(checkpoint(), 9);
    journal.undo();
    const next = { source_through_seq: 19, prior_checkpoint_seq: 9 };
    expect(() => admit(checkpoint({ boundaries: next }), 20)).toThrow(/unknown/);
    expect(() => admit(REHYDRATED, 20)).toThrow(/no checkpoint waits/);
  });
});
