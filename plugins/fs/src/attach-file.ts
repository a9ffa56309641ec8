import { randomUUID } from "node:crypto";
import { readSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { type HostClient, type ToolAnswer, ToolError } from "@cookie-agent/sdk/plugin";
import { cutText } from "./cut-text.ts";
import { diskError } from "./disk-error.ts";
import { HEAD_BYTES, mayBeMedia, promisedTypes } from "./media-file.ts";
import { resultTitle } from "./prepare-path.ts";
import { readChunks } from "./read-chunks.ts";

/** The kernel takes no media that is larger (T 4.2). */
const MAX_BYTES = 25 * 1024 * 1024;

/** Null where the kernel takes no media; what is no text is then refused by its name. */
let scratch: string | null = null;

/** Tells where files are put on their way to the kernel; once, before the first call. */
export function useScratch(directory: string | null): void {
  scratch = directory;
}

export interface OpenedFile {
  readonly fd: number;
  readonly path: string;
  readonly size: number;
}

/**
 * The answer for a file that is media: it is attached where the model takes it (T 2.1, T 4). Undefined for every other
 * file. Rejects with the kernel's `media_*` error, and with `media_type` when the content is not what the name promises.
 */
export async function attachIfMedia(
  file: OpenedFile,
  { host, signal }: { readonly host: HostClient; readonly signal: AbortSignal },
): Promise<ToolAnswer | undefined> {
  if (scratch === null) return undefined;
  const promised = promisedTypes(file.path);
  const head = readHead(file, promised === undefined ? 16 : HEAD_BYTES);
  if (promised === undefined && !mayBeMedia(head)) return undefined;
  const data = readHead(file, HEAD_BYTES).toString("base64");
  const { mime } = await host.sniffMedia({ data });
  if (mime === null && promised === undefined) return undefined;
  if (mime === null || promised?.includes(mime) === false) {
    const found = mime === null ? "nothing that is known" : mime;
    throw new ToolError(
      "media_type",
      `${file.path} is malformed: its name promises ${promised?.[0] ?? "media"}, its content is ${found}`,
    );
  }
  return attach(file, scratch, host, signal);
}

async function attach(
  file: OpenedFile,
  directory: string,
  host: HostClient,
  signal: AbortSignal,
): Promise<ToolAnswer> {
  const { path } = file;
  if (file.size > MAX_BYTES) {
    throw new ToolError(
      "media_size",
      `${path} has ${file.size} bytes; media may have ${MAX_BYTES}`,
    );
  }
  const filename = cutText(basename(path).replaceAll(/\p{Cc}/gu, " "), 512);
  const name = `read-${randomUUID()}`;
  try {
    await copyTo(join(directory, name), file, signal);
    const { artifact, mime, bytes, placement } = await host.deliverMedia({
      scratch: name,
      filename,
    });
    const where = placement === "user_turn" ? ", delivered in the following message" : "";
    return {
      content: `Attached ${mime} (${bytes} bytes)${where}.`,
      title: resultTitle(`Read attachment ${path}`),
      metadata: {
        kind: "attachment",
        mime_type: mime,
        sha256: artifact.slice(artifact.lastIndexOf("/") + 1),
      },
      attachments: [{ artifact, filename }],
    };
  } finally {
    await rm(join(directory, name), { force: true });
  }
}

async function copyTo(target: string, { fd, path, size }: OpenedFile, signal: AbortSignal) {
  const copy = await open(target, "wx", 0o600);
  try {
    for await (const chunk of readChunks(fd, path, signal, size)) await copy.writeFile(chunk);
  } catch (error) {
    throw diskError(`cannot read ${path}`, error);
  } finally {
    await copy.close();
  }
}

function readHead({ fd, path }: OpenedFile, length: number): Buffer {
  const head = Buffer.alloc(length);
  try {
    return head.subarray(0, readSync(fd, head, 0, length, 0));
  } catch (error) {
    throw diskError(`cannot read ${path}`, error);
  }
}
