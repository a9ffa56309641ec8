import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { gifOf, jpegOf, pdfOf, pngOf } from "../../support/media-files.ts";
import { openTestKernel, type TestKernelOptions } from "../../support/open-test-kernel.ts";

const PNG = pngOf(2, 2);
const MEDIA = {
  image: { mime: ["image/png", "image/jpeg", "image/gif"] },
  pdf: { mime: ["application/pdf"] },
};

/** Reads one file of the workspace and tells how that ended, and what the model was sent then. */
async function readFile(
  name: string,
  content: Uint8Array | string,
  options: TestKernelOptions = {},
) {
  const kernel = await openTestKernel({
    media: MEDIA,
    ...options,
    prepare: (project) => project.write(name, content),
    answers: [{ calls: [{ name: "read", arguments: { filePath: name } }] }, { text: "ok" }],
  });
  const { watch } = await kernel.run("Look");
  const [ended] = watch.payloads("tool_call_terminated");
  if (ended === undefined) throw new Error("the call did not end");
  return { kernel, ended, sent: JSON.stringify(kernel.server.requests[1]?.body) };
}

describe("reading a file that is media", () => {
  test.for([
    ["anthropic", "Attached image/png (79 bytes)."],
    ["openai-chat", "Attached image/png (79 bytes), delivered in the following message."],
  ] as const)(
    "over %s it is attached, and the words say where it stands",
    async ([wire, words]) => {
      const { ended, sent } = await readFile("plot.png", PNG, { wire });
      expect(ended.result).toMatchObject({
        output: words.replace("79", String(PNG.byteLength)),
        title: expect.stringMatching(/^Read attachment .*plot\.png$/),
        metadata: { kind: "attachment", mime_type: "image/png", sha256: expect.any(String) },
      });
      expect(sent).toContain(PNG.toString("base64"));
    },
  );

  test.for([
    ["a picture", jpegOf(8, 8), "image/jpeg"],
    ["picture.dat", gifOf(8, 8), "image/gif"],
    ["paper", pdfOf(), "application/pdf"],
  ] as const)("[T-151] %s is recognized by its content", async ([name, content, mime]) => {
    const { ended } = await readFile(name, content);
    expect(ended.result?.metadata).toMatchObject({ kind: "attachment", mime_type: mime });
  });

  test.for([
    ["plot.png", jpegOf(8, 8)],
    ["plot.png", "words"],
    ["paper.pdf", PNG],
    ["clip.mkv", PNG],
  ] as const)("[T-151] %s with other content is malformed", async ([name, content]) => {
    const { ended } = await readFile(name, content);
    expect(ended.error).toMatchObject({ code: "media_type" });
    expect(ended.error?.message).toContain(name);
  });

  test("[T-152] a damaged image is malformed, and nothing of it stays behind", async () => {
    const { kernel, ended } = await readFile("plot.png", PNG.subarray(0, -1));
    expect(ended.error).toMatchObject({ code: "media_type" });
    const scratch = join(kernel.project.stateDir, "run", String(process.pid), "scratch");
    const folders = await readdir(scratch);
    const left = await Promise.all(folders.map((folder) => readdir(join(scratch, folder))));
    expect(left.flat()).toEqual([]);
  });

  test("[T-156] a model that takes no images is named in the error", async () => {
    const { ended } = await readFile("plot.png", PNG, { media: {} });
    expect(ended.error).toMatchObject({ code: "media_model" });
    expect(ended.error?.message).toContain("custom.test/scripted");
  });
});

describe("reading a file that is none", () => {
  test("[T-059] what only begins like media is told what it is", async () => {
    const { ended } = await readFile("wide.txt", Buffer.from("\ufeffhi\n", "utf16le"));
    expect(ended.error).toMatchObject({ code: "execution_failed" });
    expect(ended.error?.message).toContain("UTF-16LE");
  });

  test("text is read as ever", async () => {
    const { ended } = await readFile("notes.txt", "words\n");
    expect(ended.result?.output).toContain("1: words");
    expect(ended.result?.attachments).toEqual([]);
  });
});
