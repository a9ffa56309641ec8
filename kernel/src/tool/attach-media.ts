import type {
  AdditionalMessage,
  MediaKind,
  MediaPlacement,
  ToolAttachment,
  ToolCallResult,
} from "@cookie-agent/sdk/protocol";
import type { ArtifactStore } from "../artifact/artifact-store.ts";
import { parseArtifactUri, storedArtifactReference } from "../artifact/artifact-uri.ts";
import { gateCounts, gateMedia } from "../artifact/gate-media.ts";
import { inspectMedia } from "../artifact/inspect-media.ts";
import { textOnly } from "../config/media-target.ts";
import type { DispatchContext } from "./call-context.ts";
import type { PlacedMedia } from "./complete-call.ts";

interface PlacedPart {
  readonly attachment: ToolAttachment;
  readonly placement: MediaPlacement;
}

/**
 * Judges the attachments of an answer, all of which are artifacts by now, and places them for the model that made the
 * call (E-111). Rejects with the first `media_*` error; nothing of the answer is delivered then.
 */
export async function attachMedia(
  attachments: NonNullable<ToolCallResult["attachments"]>,
  tool: string,
  { rootSessionId, session }: DispatchContext,
  artifacts: ArtifactStore,
): Promise<PlacedMedia> {
  const target = session?.media() ?? textOnly("of this session", "unknown");
  const kinds: MediaKind[] = [];
  const parts: PlacedPart[] = [];
  for (const { artifact, mime, filename } of attachments) {
    const { digest: sha256 } = parseArtifactUri(artifact ?? "");
    const media = await inspectMedia(artifacts, rootSessionId, { sha256, mime, filename });
    const placement = gateMedia(target, media);
    kinds.push(media.kind);
    // Before the next one is read: an answer may name hundreds of large ones.
    gateCounts(target, kinds);
    parts.push({
      placement,
      attachment: {
        mime_type: media.mime,
        filename: filename ?? null,
        byte_length: media.byteLength,
        sha256,
        reference: storedArtifactReference(sha256),
      },
    });
  }
  const placed = (where: MediaPlacement) =>
    parts.filter(({ placement }) => placement === where).map(({ attachment }) => attachment);
  const emitted = placed("user_turn");
  return {
    attachments: placed("tool_result"),
    ...(emitted.length > 0 && { additional_messages: [userTurn(tool, emitted)] }),
  };
}

/** The one message that holds all media of a result that the result itself cannot carry (T-159). */
function userTurn(tool: string, files: readonly ToolAttachment[]): AdditionalMessage {
  return {
    role: "user",
    content: [
      { type: "text", text: `Attached to the result of ${tool}:` },
      ...files.map((file) => ({ type: "file" as const, ...file })),
    ],
  };
}
