import type { Digest, ToolAttachment } from "@cookie-agent/sdk/protocol";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { storedArtifactReference } from "../../../../kernel/src/artifact/artifact-uri.ts";
import type {
  HistoryMessage,
  SuppliedMedia,
  SuppliedPart,
} from "../../../../kernel/src/model/bound-model.ts";
import { mediaPartsOf } from "../../../../kernel/src/model/place-media.ts";
import { type BodyPieces, RequestPrefix } from "../../../../kernel/src/model/request-prefix.ts";
import { type ModelServer, startModelServer } from "../../../support/model-server.ts";
import { ADAPTORS, bind, collect, customProvider, request } from "./provider-fixture.ts";

type Prompt = Parameters<RequestPrefix["cut"]>[0];

function say(text: string): Prompt[number] {
  return { role: "user", content: [{ type: "text", text }] };
}

/** As a package writes it: each message on its own. */
function write(prompt: Prompt): string {
  const messages = prompt.map(({ role, content }) => ({
    role,
    content:
      typeof content === "string"
        ? content
        : content.map((part) => "text" in part && part.text).join(),
  }));
  return JSON.stringify({ model: "m", messages, tools: ["ä"] });
}

function textOf(pieces: BodyPieces): string {
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))).toString();
}

function send(prefix: RequestPrefix, prompt: Prompt) {
  const cut = prefix.cut(prompt);
  return { asked: cut.prompt.length - 2, body: textOf(cut.complete(write(cut.prompt))) };
}

const NOTHING = { callId: "", name: "read", output: "", isError: false, details: null };

const message = fc.string({ unit: "binary", maxLength: 40 }).map(say);

describe("a conversation that goes on", () => {
  test("is given to the package only from where the last request ended", () => {
    const prefix = new RequestPrefix();
    const prompt = ["a", "b", "c", "d"].map(say);
    const asked = [2, 3, 3, 4].map((end) => send(prefix, prompt.slice(0, end)).asked);
    expect(asked).toEqual([2, 1, 0, 1]);
  });

  test("goes out as if all of it had been written, whatever is added, taken back or exchanged", () => {
    const step = fc.record({
      keep: fc.nat({ max: 12 }),
      added: fc.array(message, { maxLength: 5 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const prefix = new RequestPrefix();
        let prompt: Prompt = [];
        for (const { keep, added } of steps) {
          prompt = [...prompt.slice(0, keep), ...added];
          expect(send(prefix, prompt).body).toBe(write(prompt));
        }
      }),
    );
  });

  test("may go on from one request in two ways at once", () => {
    const prefix = new RequestPrefix();
    const start = [say("start")];
    send(prefix, start);
    const prompts = [[...start, say("one")], [...start, say("other, longer")], start];
    const cuts = prompts.map((prompt) => prefix.cut(prompt));
    const bodies = cuts.map((cut) => cut.complete(write(cut.prompt)));
    // A body in flight is not touched by the requests after it.
    send(prefix, [...start, say("third")]);
    expect(bodies.map(textOf)).toEqual(prompts.map(write));
  });

  test("is refused where the package writes messages in another form", () => {
    const cut = new RequestPrefix().cut([say("a")]);
    expect(() => cut.complete('{"messages":[]}')).toThrow(/unknown form/);
  });
});

describe("every wire", () => {
  let server: ModelServer;
  beforeEach(async () => {
    server = await startModelServer();
  });
  afterEach(() => server.close());

  const turn = (index: number): HistoryMessage[] => [
    {
      role: "assistant",
      model: { model: "custom.test/m", variant: null },
      content: [
        { type: "text", text: `Löök ${index}` },
        {
          type: "tool_call",
          id: `call_${index}`,
          provider_item_id: null,
          name: "read",
          input: { path: `"${index}"` },
          raw_input: null,
        },
      ],
    },
    {
      role: "tool",
      results: [
        {
          callId: `call_${index}`,
          name: "read",
          output: "\u2028\\n😀",
          isError: false,
          details: null,
        },
      ],
    },
  ];

  test.for(ADAPTORS)("%s sends what it would send without the requests before", async (adaptor) => {
    const provider = customProvider({ adaptor, endpoint: server.baseUrl });
    const bound = await bind(provider);
    const history: HistoryMessage[] = [{ role: "user", text: "go" }];
    for (let index = 0; index < 4; index += 1) {
      const asked = request({ history: [...history], system: index < 3 ? "Sys" : "Other" });
      server.enqueue({ text: "ok" });
      await collect(bound, asked);
      server.enqueue({ text: "ok" });
      await collect(await bind(provider), asked);
      const [kept, fresh] = server.requests.slice(-2);
      expect(kept?.body).toEqual(fresh?.body);
      expect(kept?.headers["content-length"]).toBe(fresh?.headers["content-length"]);
      history.push(...turn(index));
    }
  });

  test.for(ADAPTORS)(
    "%s sends media of long ago as a new binding would, whatever a hook replaces",
    async (adaptor) => {
      const provider = customProvider({ adaptor, endpoint: server.baseUrl });
      const bound = await bind(provider);
      const file = (mime: string, filename: string | null) => ({
        mime_type: mime,
        filename,
        byte_length: 3,
        sha256: "0".repeat(64) as Digest,
        reference: storedArtifactReference("0".repeat(64) as Digest),
      });
      const files = [file("image/png", null), file("application/pdf", "\u202e\ud800.pdf")];
      const inside = files.map((each) => ({ ...each }));
      const said = { type: "text" as const, text: "Attached to the result of read:" };
      const additional = {
        role: "user" as const,
        content: [said, ...files.map((each) => ({ type: "file" as const, ...each }))],
      };
      const placement = adaptor.startsWith("openai-c")
        ? ("user_turn" as const)
        : ("tool_result" as const);
      const supply = (data: string): SuppliedMedia =>
        new Map<ToolAttachment, SuppliedPart>([
          ...inside.map((each) => [each, { kind: "media", placement, data }] as const),
          ...mediaPartsOf({
            role: "tool",
            results: [{ ...NOTHING, additional: [additional] }],
          }).map((each) => [each, { kind: "media", placement: "user_turn", data }] as const),
        ]);
      const withMedia = (index: number): HistoryMessage[] => {
        const [assistant, tool] = turn(index);
        if (assistant === undefined || tool?.role !== "tool") throw new Error("no turn");
        const results = tool.results.map((each) => ({
          ...each,
          attachments: inside,
          additional: [additional],
        }));
        return [assistant, { role: "tool", results }];
      };
      const history: HistoryMessage[] = [{ role: "user", text: "go" }, ...withMedia(100)];
      const media = supply("AAAA");
      const steps: (() => void)[] = [
        () => history.push(...turn(0)),
        () => history.splice(0, 1, { role: "user", text: "gone" }),
        () => history.push(...withMedia(1), ...turn(2)),
        () => history.splice(2, 1, ...withMedia(100).slice(1)),
        () => history.push(...turn(3)),
      ];
      for (const [index, step] of steps.entries()) {
        step();
        const asked = request({
          history: [...history],
          media: index === 3 ? supply("BBBB") : index === 4 ? new Map() : media,
        });
        server.enqueue({ text: "ok" });
        await collect(bound, asked);
        server.enqueue({ text: "ok" });
        await collect(await bind(provider), asked);
        const [kept, fresh] = server.requests.slice(-2);
        expect(kept?.body).toEqual(fresh?.body);
        expect(kept?.headers["content-length"]).toBe(fresh?.headers["content-length"]);
      }
      expect(JSON.stringify(server.requests[0]?.body).split("AAAA").length - 1).toBe(4);
    },
  );
});
