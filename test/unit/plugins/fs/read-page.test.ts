import fc from "fast-check";
import { expect, test } from "vitest";
import { readPage } from "../../../../plugins/fs/src/read-page.ts";

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function page(
  content: string | Buffer,
  request: { offset?: number; byte?: number; limit?: number } = {},
  size = 64 * 1024,
) {
  const wanted = { offset: 0, byte: 0, limit: 2000, ...request };
  return readPage(pieces(Buffer.from(content), size), "/f", wanted);
}

test.for([
  ["one line without an end", "a", "1: a\n", 1],
  ["a final newline adds no line", "a\n", "1: a\n", 1],
  ["an empty last line counts", "a\n\n", "1: a\n2: \n", 2],
  ["CR before LF is not shown", "a\r\nb\r\n", "1: a\n2: b\n", 2],
  ["a lone CR does not split", "a\rb\n", "1: a\rb\n", 1],
  ["a byte order mark is not shown", "\ufeffa\n", "1: a\n", 1],
] as const)("[T-056] %s", async ([, content, text, totalLines]) => {
  expect(await page(content)).toEqual({ text, totalLines, nextOffset: null, nextByte: null });
});

test("[T-056] pages follow each other without a gap, whatever the pieces of the stream", async () => {
  const line = fc.array(fc.constantFrom("a", "é", "€", "😀", "\r"), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { minLength: 1, maxLength: 12 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 5 }),
      async (lines, finalNewline, size, limit) => {
        const content =
          lines.map((parts) => parts.join("")).join("\n") + (finalNewline ? "\n" : "");
        fc.pre(content !== "" && !content.startsWith("\ufeff"));
        const whole = await page(content, {}, size);
        let text = "";
        let offset: number | null = 0;
        while (offset !== null) {
          const part: Awaited<ReturnType<typeof page>> = await page(
            content,
            { offset, limit },
            size,
          );
          expect(part.totalLines).toBe(whole.totalLines);
          text += part.text;
          offset = part.nextOffset;
        }
        expect(text).toBe(whole.text);
      },
    ),
  );
});

test("[B005] [T-057] [T-182] a line over the page bound goes on by its byte cursor until all of it was read", async () => {
  const line = "€uro😀".repeat(400_000);
  const content = `first\n${line}\nlast\n`;
  let read = "";
  let offset: number | null = 1;
  let byte: number | null = 0;
  let pages = 0;
  while (offset === 1 && byte !== null) {
    const part: Awaited<ReturnType<typeof page>> = await page(content, { offset, byte, limit: 1 });
    expect(part.text.length).toBeGreaterThan(4);
    expect(Buffer.byteLength(part.text)).toBeLessThanOrEqual(2 * 1024 * 1024);
    read += part.text.slice("2: ".length, -1);
    offset = part.nextOffset;
    byte = part.nextByte;
    pages += 1;
  }
  expect(read === line).toBe(true);
  expect({ pages, offset, byte }).toEqual({ pages: 2, offset: 2, byte: 0 });
});

test("[B005] a long line of control characters is cut so that its frame fits", async () => {
  const part = await page(Buffer.alloc(3_000_000), { limit: 1 });
  expect(Buffer.byteLength(JSON.stringify(part.text))).toBeLessThan(4 * 1024 * 1024);
  expect(part.nextByte).toBeGreaterThan(100_000);
});

test("[T-055] a byte cursor inside a character moves back to its start", async () => {
  expect((await page("a€b\n", { byte: 3 })).text).toBe("1: €b\n");
  expect((await page("a€b\n", { byte: 4 })).text).toBe("1: b\n");
});

test("[T-057] a byte cursor past its line names the line's length", async () => {
  await expect(page("abc\n", { byte: 9 })).rejects.toThrow(/which has 3 bytes/);
});

test("[T-055] several lines over 2 MiB are refused with a limit that fits", async () => {
  const content = `${"x".repeat(1023)}\n`.repeat(4096);
  const error = await page(content, { limit: 4096 }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "resource_limit" });
  const { limit } = (error as { data: { limit: number } }).data;
  expect(String(error)).toContain(`limit ${limit}`);
  expect((await page(content, { limit })).nextOffset).toBe(limit);
});

test("[T-055] a huge limit over many empty lines is refused with a limit that fits", async () => {
  await expect(page("\n".repeat(2_500_000), { limit: 9_000_000 })).rejects.toMatchObject({
    code: "resource_limit",
  });
});

test("[T-059] bytes that turn strange after the page are refused too", async () => {
  const content = Buffer.concat([Buffer.from("a\n".repeat(100_000)), Buffer.from([0xe9, 0x0a])]);
  await expect(page(content, { limit: 1 })).rejects.toMatchObject({
    code: "execution_failed",
    data: { reason: "encoding" },
  });
});
