import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionList, SessionResume } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { fixturePlugin } from "../../support/fixture-plugin.ts";
import { gifOf, isoOf, pdfOf, pngOf } from "../../support/media-files.ts";
import { type Answer, pick, type ScriptedMedia, type Wire } from "../../support/model-server.ts";
import { openTestKernel, type TestKernelOptions } from "../../support/open-test-kernel.ts";
import { SECOND_MODEL } from "../../support/second-model.ts";

const IMAGES = ["image/png", "image/gif"];
const MEDIA: ScriptedMedia = {
  image: { mime: IMAGES },
  pdf: { mime: ["application/pdf"] },
};
const PNG = pngOf(2, 2);
const base64 = (bytes: Buffer) => bytes.toString("base64");
/** As the Messages wire carries it; the call that made it has it among its arguments. */
const block = (bytes: Buffer) => `"data":"${base64(bytes)}"`;
const plot = { name: "plot", base64: base64(PNG) };
const show = (args: object) => ({ calls: [{ name: "show", arguments: args }] });
const open = (options: TestKernelOptions) =>
  openTestKernel({ config: fixturePlugin("gallery"), media: MEDIA, ...options });

/** One call of the plugin and how it ended. */
async function callOnce(args: object, options: TestKernelOptions = {}) {
  const kernel = await open({ answers: [show(args), { text: "ok" }], ...options });
  const { watch } = await kernel.run("Hi");
  const [ended] = watch.payloads("tool_call_terminated");
  if (ended === undefined) throw new Error("the call did not end");
  return { kernel, ended, request: kernel.server.requests[1]?.body };
}

describe("an attachment", () => {
  test("[E-110] a scratch file reaches the model and the record, under its content's digest", async () => {
    const attachments = [{ scratch: "plot", mime: "image/png", filename: "plot.png" }];
    const { ended, request } = await callOnce(
      { files: [plot], attachments },
      { wire: "anthropic" },
    );
    expect(ended.outcome).toBe("completed");
    expect(ended.result?.attachments).toEqual([
      {
        mime_type: "image/png",
        filename: "plot.png",
        byte_length: PNG.byteLength,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        reference: `artifact://sha256/${ended.result?.attachments[0]?.sha256}`,
      },
    ]);
    expect(JSON.stringify(request)).toContain(block(PNG));
  });

  test.for([
    ["host/artifacts/write", "data", base64(PNG)],
    ["host/artifacts/write", "scratch", "plot"],
    ["host/media/deliver", "scratch", "plot"],
  ] as const)(
    "[E-110] what the call stored by %s from %s is attached",
    async ([method, member, value]) => {
      const ask = [{ method, params: { [member]: value } }];
      const args = { files: [plot], ask, attachments: [{ answered: 0 }] };
      const { ended } = await callOnce(args, { wire: "anthropic" });
      expect(ended.outcome).toBe("completed");
      expect(ended.result?.attachments).toHaveLength(1);
    },
  );

  test.for([
    [
      "a symbolic link",
      { name: "plot", as: "symlink", to: "/etc/hostname" },
      "unsupported_security",
    ],
    ["a folder", { name: "plot", as: "folder" }, "unsupported_security"],
    ["a file that is not there", { name: "other" }, "execution_failed"],
    [
      "more than 64 MiB",
      { name: "plot", as: "sparse", to: 64 * 1024 * 1024 + 1 },
      "resource_limit",
    ],
  ] as const)("[E-110] %s is not imported", async ([, file, code]) => {
    const { ended } = await callOnce({ files: [file], attachments: [{ scratch: "plot" }] });
    expect(ended).toMatchObject({ outcome: "failed", error: { code } });
  });

  test("[E-110] a file with a second name is not imported", async () => {
    const files = [plot, { name: "again", as: "hard_link", to: "plot" }];
    const { ended } = await callOnce({ files, attachments: [{ scratch: "again" }] });
    expect(ended.error).toMatchObject({ code: "unsupported_security" });
  });

  test("[E-110] a file in a folder of the scratch directory has no name there", async () => {
    const files = [{ name: "sub/plot", base64: base64(PNG) }];
    const { ended } = await callOnce({ files, attachments: [{ scratch: "sub/plot" }] });
    expect(ended).toMatchObject({ outcome: "failed", error: { code: "protocol_violation" } });
  });

  test("[E-110] [E-111] a type that the content is not, and content that is no media, are errors", async () => {
    const wrong = await callOnce({
      files: [plot],
      attachments: [{ scratch: "plot", mime: "image/jpeg" }],
    });
    expect(wrong.ended.error).toMatchObject({ code: "media_type" });
    expect(wrong.ended.error?.message).toMatch(/image\/jpeg.*image\/png/);
    const words = { name: "plot", base64: base64(Buffer.from("words")) };
    const { ended } = await callOnce({ files: [words], attachments: [{ scratch: "plot" }] });
    expect(ended.error).toMatchObject({ code: "media_type" });
  });

  test("[E-111] a damaged image is an error, beside what the call had said", async () => {
    const cut = { name: "plot", base64: base64(PNG.subarray(0, -4)) };
    const attachments = [{ scratch: "plot", filename: "plot.png" }];
    const { ended, request } = await callOnce({ files: [cut], attachments, streamed: true });
    expect(ended.error).toMatchObject({ code: "media_type" });
    expect(ended.error?.message).toContain("plot.png");
    expect(JSON.stringify(request)).toContain("streamed words");
  });

  test("[E-110] a scratch file is taken away with the answer that attaches it, however often that names it", async () => {
    const attachments = [{ scratch: "plot" }, { scratch: "plot" }];
    const { kernel, ended } = await callOnce({ files: [plot], attachments });
    expect(ended.result?.additional_messages?.[0]?.content).toHaveLength(3);
    kernel.server.enqueue(show({ attachments }), { text: "ok" });
    const { watch } = await kernel.run("Again");
    expect(watch.payloads("tool_call_terminated")[0]?.error).toMatchObject({
      code: "execution_failed",
      message: "the scratch file plot cannot be opened",
    });
  });

  test("[E-119] an untrusted plugin attaches what its call wrote, not what others left", async () => {
    const written = { ask: [{ method: "host/artifacts/write", params: { data: base64(PNG) } }] };
    const { kernel, ended } = await callOnce(written);
    const [{ uri }] = JSON.parse(ended.result?.output ?? "[]") as [{ uri: string }];
    kernel.server.enqueue(show({ attachments: [{ artifact: uri }] }), { text: "ok" });
    const { watch } = await kernel.run("Again");
    expect(watch.payloads("tool_call_terminated")[0]?.error?.code).toBe("permission_denied");
  });
});

describe("the gates", () => {
  const attached = { files: [plot], attachments: [{ scratch: "plot" }] };

  test("[E-111] [T-156] a model without the input kind is named", async () => {
    const { ended } = await callOnce(attached, { media: {} });
    expect(ended.error).toMatchObject({ code: "media_model" });
    expect(ended.error?.message).toMatch(/custom\.test\/scripted.*image/);
  });

  test("[E-111] [T-156] a family that cannot deliver the kind is named", async () => {
    const clip = { name: "plot", base64: base64(isoOf("isom")) };
    const { ended } = await callOnce(
      { ...attached, files: [clip] },
      { media: { video: { mime: ["video/mp4"] } }, wire: "openai-responses" },
    );
    expect(ended.error).toMatchObject({ code: "media_family" });
    expect(ended.error?.message).toContain("openai-responses");
  });

  test("[E-111] sizes and counts are the model's", async () => {
    const small = { image: { mime: IMAGES, bytes: PNG.byteLength - 1, count: 1 } };
    const { ended } = await callOnce(attached, { media: small });
    expect(ended.error).toMatchObject({ code: "media_size" });
    const twice = { files: [plot], attachments: [{ scratch: "plot" }, { scratch: "plot" }] };
    const single = { image: { mime: IMAGES, count: 1 } };
    const counted = await callOnce(twice, { media: single });
    expect(counted.ended.error).toMatchObject({ code: "media_count" });
  });
});

describe("delivery", () => {
  const files = [plot, { name: "doc", base64: base64(pdfOf()) }];
  const attachments = [
    { scratch: "plot", filename: "plot.png" },
    { scratch: "doc", filename: "doc.pdf" },
  ];
  const dataUrl = (mime: string, bytes: Buffer) => `data:${mime};base64,${base64(bytes)}`;

  test("[E-111] the Messages wire carries images and PDFs inside the result", async () => {
    const { request } = await callOnce({ files, attachments }, { wire: "anthropic" });
    const result = pick(request, "messages", -1, "content", 0);
    expect(pick(result, "type")).toBe("tool_result");
    expect(pick(result, "content")).toMatchObject([
      { type: "text" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: base64(PNG) } },
      { type: "document", source: { media_type: "application/pdf", data: base64(pdfOf()) } },
    ]);
  });

  test("[E-111] the Responses wire carries images and PDFs inside the result", async () => {
    const { request } = await callOnce({ files, attachments }, { wire: "openai-responses" });
    const output = pick(request, "input", -1);
    expect(output).toMatchObject({
      type: "function_call_output",
      output: [
        { type: "input_text" },
        { type: "input_image", image_url: dataUrl("image/png", PNG) },
        { type: "input_file", filename: "doc.pdf", file_data: dataUrl("application/pdf", pdfOf()) },
      ],
    });
  });

  test("[E-111] the chat wire gets them in one user turn right behind all results of the turn", async () => {
    const { kernel, ended, request } = await callOnce(
      {},
      {
        answers: [
          {
            calls: [
              { name: "show", arguments: { files, attachments } },
              { name: "show", arguments: {} },
            ],
          },
          { text: "ok" },
        ],
      },
    );
    expect(ended.result).toMatchObject({
      attachments: [],
      additional_messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Attached to the result of show:" },
            { type: "file", filename: "plot.png" },
            { type: "file", filename: "doc.pdf" },
          ],
        },
      ],
    });
    expect(JSON.stringify(pick(request, "messages", -3))).not.toContain("data:");
    expect([-3, -2, -1].map((at) => pick(request, "messages", at, "role"))).toEqual([
      "tool",
      "tool",
      "user",
    ]);
    expect(pick(request, "messages", -1, "content")).toEqual([
      { type: "text", text: "Attached to the result of show:" },
      { type: "image_url", image_url: { url: dataUrl("image/png", PNG) } },
      {
        type: "file",
        file: { filename: "doc.pdf", file_data: dataUrl("application/pdf", pdfOf()) },
      },
    ]);
    expect(kernel.server.requests).toHaveLength(2);
  });

  test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
    "a session that another kernel resumes sends the same over %s",
    async (wire) => {
      const { kernel, request } = await callOnce({ files, attachments }, { wire });
      const [session] = (await kernel.client.request(SessionList, {})).sessions;
      if (session === undefined) throw new Error("no session");
      await kernel.close();
      const again = await open({ on: kernel, answers: [{ text: "still here" }] });
      await again.client.request(SessionResume, { session_id: session.session_id });
      await again.run("And now?", { session: session.session_id });
      const sent = again.server.requests[2]?.body;
      const list = wire === "openai-responses" ? "input" : "messages";
      const before = withoutMarks(pick(request, list));
      expect(withoutMarks(pick(sent, list)).slice(0, before.length)).toEqual(before);
    },
  );

  test("[E-111] media whose content is lost or damaged meanwhile become a note, and the run goes on", async () => {
    const { kernel, ended } = await callOnce({ files, attachments }, { wire: "anthropic" });
    const [image, pdf] = ended.result?.attachments ?? [];
    const { sessions } = await kernel.client.request(SessionList, {});
    const session = sessions[0]?.session_id;
    if (!image || !pdf || !session) throw new Error("nothing was attached");
    const stored = join(kernel.project.stateDir, "sessions");
    const names = await readdir(stored, { recursive: true });
    const fileOf = (digest: string) =>
      join(stored, names.find((name) => name.endsWith(digest)) ?? "none");
    await rm(fileOf(image.sha256));
    await writeFile(fileOf(pdf.sha256), "something else");
    kernel.server.enqueue({ text: "ok" });
    const { end } = await kernel.run("And now?", { session });
    const sent = JSON.stringify(kernel.server.requests[2]?.body);
    expect(end.type).toBe("run_completed");
    expect(sent).toContain("plot.png (image/png) left out: its content is lost");
    expect(sent).toContain("doc.pdf (application/pdf) left out: its content is lost");
    expect(sent).not.toContain(block(PNG));
  });

  test("[C-182] [T-158] the oldest parts beyond the count become notes in the request, not in the record", async () => {
    const gif = { name: "anim", base64: base64(gifOf(2, 2)) };
    const kernel = await open({
      wire: "anthropic",
      media: { image: { mime: IMAGES, count: 1 } },
      answers: [
        show({ files: [plot], attachments: [{ scratch: "plot", filename: "old.png" }] }),
        show({ files: [gif], attachments: [{ scratch: "anim", filename: "new.gif" }] }),
        { text: "ok" },
      ],
    });
    const { watch } = await kernel.run("Hi");
    const [, before, after] = kernel.server.requests.map(({ body }) => JSON.stringify(body));
    expect(before).toContain(block(PNG));
    expect(after).not.toContain(block(PNG));
    expect(after).toContain("old.png (image/png) left out: newer ones took its place");
    expect(after).toContain(block(gifOf(2, 2)));
    const ends = watch.payloads("tool_call_terminated");
    expect(ends.map(({ result }) => result?.attachments.length)).toEqual([1, 1]);
  });

  test.for<Wire>(["openai-chat", "openai-responses", "anthropic"])(
    "[T-158] an image that the provider refuses becomes a note, for whoever resumes the session too (%s)",
    async (wire) => {
      const refuse: Answer = {
        status: 400,
        body: { error: { type: "invalid_request_error", message: "Could not process image" } },
      };
      const gif = { name: "anim", base64: base64(gifOf(2, 2)) };
      const kernel = await open({
        wire,
        answers: [
          show({ files: [gif], attachments: [{ scratch: "anim", filename: "whole.gif" }] }),
          show({ files: [plot], attachments: [{ scratch: "plot", filename: "broken.png" }] }),
          refuse,
          { text: "I cannot see it." },
        ],
      });
      const { end, watch, sessionId } = await kernel.run("Hi");
      expect(end.type).toBe("run_completed");
      expect(watch.payloads("attempt_abandoned")).toMatchObject([
        { media_refused: true, error: { kind: "invalid_request" } },
      ]);
      await kernel.close();

      const again = await open({
        on: kernel,
        answers: [refuse, { text: "still here" }],
      });
      await again.client.request(SessionResume, { session_id: sessionId });
      // There is nothing new that could be at fault, so the answer counts and nothing else is left out.
      const second = await again.run("And now?", { session: sessionId });
      expect(second.end).toMatchObject({ type: "run_failed", error: { code: "model_error" } });
      expect((await again.run("And now?", { session: sessionId })).end.type).toBe("run_completed");

      const note = "broken.png (image/png) left out: the provider refused a request";
      const sent = kernel.server.requests.map(({ body }) => {
        const list = JSON.stringify(pick(body, wire === "openai-responses" ? "input" : "messages"));
        // The arguments of the call hold the bytes as well, in quotes of their own.
        const has = (bytes: Buffer) =>
          list.includes(block(bytes)) || list.includes(`;base64,${base64(bytes)}"`);
        return [has(gifOf(2, 2)), has(PNG), list.includes(note)];
      });
      expect(sent).toEqual([
        [false, false, false],
        [true, false, false],
        [true, true, false],
        ...Array<boolean[]>(3).fill([true, false, true]),
      ]);
    },
  );

  test("a model that takes no media gets a note where another one got an image", async () => {
    const { kernel } = await callOnce(
      { files: [plot], attachments: [{ scratch: "plot", filename: "plot.png" }] },
      { config: `${fixturePlugin("gallery")}\n${SECOND_MODEL}`, wire: "anthropic" },
    );
    const { sessions } = await kernel.client.request(SessionList, {});
    const session = sessions[0]?.session_id;
    if (session === undefined) throw new Error("no session");
    kernel.server.enqueue({ text: "ok" });
    const selection = { agent: "primary", model: { model: "custom.test/second", variant: null } };
    const { end } = await kernel.run("And you?", { session, selection });
    const sent = JSON.stringify(kernel.server.requests[2]?.body);
    expect(end.type).toBe("run_completed");
    expect(sent).not.toContain(block(PNG));
    expect(sent).toContain("plot.png (image/png) left out: the model custom.test/second");
  });

  test("a result that calls itself an error still brings its media", async () => {
    const args = { files: [plot], attachments: [{ scratch: "plot" }], is_error: true };
    const { ended, request } = await callOnce(args, { wire: "anthropic" });
    expect(ended.outcome).toBe("completed");
    expect(JSON.stringify(request)).toContain(block(PNG));
  });
});

/** Cache markers wander with the end of the conversation. */
function withoutMarks(messages: unknown): unknown[] {
  const text = JSON.stringify(messages, (key, value: unknown) =>
    key === "cache_control" ? undefined : value,
  );
  return JSON.parse(text) as unknown[];
}
