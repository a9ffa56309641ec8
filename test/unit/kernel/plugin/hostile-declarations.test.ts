import {
  isCookieError,
  Manifest,
  ToolCallResult,
  type ToolDeclaration,
} from "@cookie-agent/sdk/protocol";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkAnswer } from "../../../../kernel/src/plugin/check-answer.ts";
import { judgeDynamicTool } from "../../../../kernel/src/plugin/judge-dynamic-tool.ts";
import { parseManifest } from "../../../../kernel/src/plugin/load-manifest.ts";
import { resolveTools, type TierSubject } from "../../../../kernel/src/plugin/trust-tier.ts";
import { manifestOf } from "./open-host.ts";

/** The same cases on every machine; a failure prints the path that leads back to it. */
const CASES = { seed: 20_261_130, numRuns: 400 };

const TOOL: ToolDeclaration = {
  name: "find",
  description: "Finds.",
  permission_name: "find",
  parameters: {
    type: "object",
    properties: { q: { type: "string", pattern: "^a+$" }, n: { $ref: "#/properties/q" } },
    required: ["q"],
  },
  prepare: {
    mode: "static",
    resources: [{ action: "plugin", arg: "q" }],
    serialize: [{ arg: "q" }],
  },
  output: { mode: "named", streams: ["out", "err"] },
  timeout_ms: 10,
};

const subject = (tier: TierSubject["tier"]): TierSubject => ({
  name: "sample",
  tier,
  grants: new Set(),
  toolTimeoutMs: 1000,
  slotActions: new Map(),
  diagnose: () => undefined,
});

/** As the wire brings it, without the one name that no schema lets through. */
function fromWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value).replaceAll("__proto__", "proto"));
}

/** Any JSON in the place of one member, or one member more or less, anywhere. */
function mutated<T extends object>(valid: T): fc.Arbitrary<unknown> {
  return fc
    .tuple(fc.nat(), fc.nat(), fc.constantFrom("replace", "remove", "add"), fc.jsonValue())
    .map(([place, which, how, value]) => {
      const copy = structuredClone(valid) as Record<string, unknown>;
      const holders: Record<string, unknown>[] = [];
      const visit = (node: unknown): void => {
        if (typeof node !== "object" || node === null) return;
        holders.push(node as Record<string, unknown>);
        for (const inner of Object.values(node)) visit(inner);
      };
      visit(copy);
      const holder = holders[place % holders.length] ?? copy;
      const keys = Object.keys(holder);
      const key = keys[which % Math.max(1, keys.length)] ?? "x";
      if (how === "remove") delete holder[key];
      else holder[how === "add" ? "surprise" : key] = value;
      return fromWire(copy);
    });
}

describe("whatever a plugin declares", () => {
  test("[E-131] [E-034] a dynamic tool is taken as the schema has it or refused as invalid_declaration", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(mutated(TOOL), fc.jsonValue().map(fromWire)),
        fc.constantFrom("first_party" as const, "trusted" as const, "untrusted" as const),
        async (declared, tier) => {
          try {
            const tool = await judgeDynamicTool(declared, {
              manifest: null,
              subject: subject(tier),
            });
            expect(tool.declaration).toEqual(declared);
            expect(tool.prepare).toMatchObject({
              mode: expect.stringMatching(/^(?:static|dynamic)$/),
            });
            if (tier === "untrusted") {
              expect([tool.concurrency, tool.truncation, tool.retrySafe]).toEqual([
                "exclusive",
                "bounded",
                false,
              ]);
              expect(tool.timeoutMs).toBeLessThanOrEqual(1000);
            }
          } catch (error) {
            if (!isCookieError(error, "invalid_declaration")) throw error;
          }
        },
      ),
      CASES,
    );
  });

  test("[E-030] [E-034] a manifest is read as it stands or refused by naming what is wrong", async () => {
    const valid = manifestOf({ tools: [TOOL], capabilities: { tools: true, host: ["media"] } });
    const bytes = fc.oneof(
      mutated(valid).map((manifest) => Buffer.from(JSON.stringify(manifest))),
      fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 6 })).map(([place, garbage]) => {
        const text = Buffer.from(JSON.stringify(valid));
        const at = place % text.length;
        return Buffer.concat([text.subarray(0, at), garbage, text.subarray(at + garbage.length)]);
      }),
      fc.uint8Array({ maxLength: 64 }).map((garbage) => Buffer.from(garbage)),
    );
    await fc.assert(
      fc.asyncProperty(bytes, async (given) => {
        try {
          const manifest = await parseManifest(given, "sample", "untrusted");
          expect(manifest).toEqual(JSON.parse(given.toString()));
          expect(Manifest.safeParse(manifest).success).toBe(true);
        } catch (error) {
          if (!isCookieError(error)) throw error;
        }
      }),
      CASES,
    );
  });

  test("[E-092] an answer is one of the three completions that its tool allows, or a protocol violation", () => {
    const [named] = resolveTools([TOOL], subject("trusted"));
    const [single] = resolveTools([{ ...TOOL, output: { mode: "single" } }], subject("trusted"));
    if (named === undefined || single === undefined) throw new Error("no tool");
    const answers = [
      { content: "text", title: "t", metadata: { a: { b: 1 } } },
      { outputs: [{ stream: "out", text: "x" }], is_error: true },
      { streamed: true, failed: false, attachments: [{ scratch: "a.png" }] },
    ];
    fc.assert(
      fc.property(
        fc.oneof(...answers.map(mutated)),
        fc.constantFrom(named, single),
        fc.boolean(),
        (given, tool, streamed) => {
          const parsed = ToolCallResult.safeParse(given);
          if (!parsed.success) return;
          try {
            const answer = checkAnswer(parsed.data, tool, streamed);
            const completions = [answer.content, answer.outputs, answer.streamed].filter(
              (v) => v !== undefined,
            );
            expect(completions).toHaveLength(1);
            if (streamed) expect(answer.streamed).toBe(true);
          } catch (error) {
            if (!isCookieError(error)) throw error;
          }
        },
      ),
      CASES,
    );
  });
});
