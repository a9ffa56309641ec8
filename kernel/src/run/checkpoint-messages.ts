import type { RehydratedFile } from "@cookie-agent/sdk/protocol";
import type { HistoryMessage, ToolResultMessage } from "../model/bound-model.ts";
import { hasMedia } from "../model/place-media.ts";

/** The summary as the model reads it: a turn of the user that says what it is. */
export function summaryMessage(summary: string): HistoryMessage {
  const text = `<conversation_summary>
The earlier part of this conversation was replaced by this summary of it. Go on from here; what was asked still holds.

${summary}
</conversation_summary>`;
  return { role: "user", text, injected: true };
}

/** Files that were read earlier, as they stood at the checkpoint. */
export function rehydratedMessage(files: readonly RehydratedFile[]): HistoryMessage {
  const sections = files.map(({ path, content, byte_length: byteLength }) => {
    const shown = Buffer.byteLength(content);
    const cut = shown < byteLength ? ` cut="the first ${shown} of ${byteLength} bytes"` : "";
    return `<file path=${JSON.stringify(path)}${cut}>\n${content}\n</file>`;
  });
  const text = `<files_read_before>
Files that you read before the summary, as they are on disk now:

${sections.join("\n")}
</files_read_before>`;
  return { role: "user", text, injected: true };
}

/** A message as a checkpoint keeps it: without media (T-161). The same object when it has none. */
export function withoutMedia(message: HistoryMessage): HistoryMessage {
  if (!hasMedia(message)) return message;
  return { role: "tool", results: message.results.map(dropMedia) };
}

function dropMedia(result: ToolResultMessage): ToolResultMessage {
  const { attachments = [], additional = [], ...rest } = result;
  const texts = additional.flatMap(({ content }) =>
    content.flatMap((part) => (part.type === "text" ? [part.text] : [])),
  );
  const files = [
    ...attachments,
    ...additional.flatMap(({ content }) => content.filter((part) => part.type === "file")),
  ];
  if (files.length === 0 && texts.length === 0) return rest;
  const notes = files.map(
    ({ filename, mime_type: type }) =>
      `[attachment ${filename ?? type} was dropped to save room; read it again if it is needed]`,
  );
  return { ...rest, output: [rest.output, ...texts, ...notes].join("\n") };
}
