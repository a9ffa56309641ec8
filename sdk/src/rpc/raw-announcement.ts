import { type Message, Message as Messages } from "vscode-jsonrpc";

/** What a frame says of the bytes behind its line; `lost`: nobody can tell where they end. */
export type Announcement =
  | { readonly byteLength: number; readonly problem: string | undefined }
  | { readonly lost: string };

export function announcesBytes(frame: Message): boolean {
  return Object.hasOwn(frame, "raw");
}

/** Reads the announcement of a frame that has one, on a pipe where raw bytes were agreed on or not (E-016). */
export function readAnnouncement(frame: Message, agreed: boolean, maxBytes: number): Announcement {
  const raw: unknown = "raw" in frame ? frame.raw : undefined;
  if (!agreed) return { lost: "raw bytes were not agreed on" };
  if (!isCount(raw)) return { lost: "raw is no count of bytes" };
  if (!Messages.isNotification(frame)) {
    return { byteLength: raw, problem: "raw bytes may follow a notification only" };
  }
  return {
    byteLength: raw,
    problem: raw > maxBytes ? `more than ${maxBytes} raw bytes` : undefined,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
