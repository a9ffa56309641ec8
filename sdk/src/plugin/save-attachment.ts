import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ToolCallResult } from "../protocol/plugin-methods.ts";

/** What is said of an attachment beside its bytes. */
export interface AttachmentFile {
  /** Content that is something else fails the call; default: whatever the content is. */
  readonly mime?: string;
  /** Shown with the result; 1 to 512 bytes. */
  readonly filename?: string;
}

/** Writes a new file that nobody else reads, directly inside the scratch directory (E-110). */
export async function saveAttachment(
  scratch: string,
  bytes: Uint8Array,
  { mime, filename }: AttachmentFile = {},
): Promise<NonNullable<ToolCallResult["attachments"]>[number]> {
  const name = `attachment-${randomUUID()}`;
  await writeFile(join(scratch, name), bytes, { flag: "wx", mode: 0o600 });
  return {
    scratch: name,
    ...(mime !== undefined && { mime }),
    ...(filename !== undefined && { filename }),
  };
}
