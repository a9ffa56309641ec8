import {
  CookieError,
  controlFreeText,
  type SessionId,
  type TitleChange,
  type TitleRequest,
} from "@cookie-agent/sdk/protocol";
import { canonicalJson } from "../support/canonical-json.ts";
import { shown } from "../support/safe-text.ts";

const Title = controlFreeText(1, 512);
const FORK_MARK = " (fork)";
const MAX_TITLE_BYTES = 512;

/**
 * The change of title that a person asks for; null when it was made before (S-033). Throws `invalid_title`, or
 * `idempotency_conflict` when the key came with another change.
 */
export function titleChange(
  renames: ReadonlyMap<string, TitleChange>,
  sessionId: SessionId,
  request: { readonly clientRenameId: string; readonly change: TitleRequest },
): TitleChange | null {
  const { clientRenameId: client_rename_id, change } = request;
  const data = { session_id: sessionId, client_rename_id };
  const asked = toChange(change, client_rename_id);
  if (asked.kind === "user_set" && !isTitle(asked.title)) {
    throw new CookieError(
      "invalid_title",
      `a title has at most ${MAX_TITLE_BYTES} bytes, something in it that is shown, and no control characters`,
      { data },
    );
  }
  const known = renames.get(client_rename_id);
  if (known === undefined) return asked;
  if (canonicalJson(known) === canonicalJson(asked)) return null;
  throw new CookieError(
    "idempotency_conflict",
    "this client_rename_id was used before with another change",
    { data },
  );
}

function toChange(change: TitleRequest, client_rename_id: string): TitleChange {
  if (change.type === "set") return { kind: "user_set", title: change.title, client_rename_id };
  return { kind: change.type === "clear" ? "user_clear" : "user_reset", client_rename_id };
}

function isTitle(title: string): boolean {
  return shown(title).trim() !== "" && Title.safeParse(title).success;
}

/** The title of a fork: that of its source with a mark, cut so that both fit (S-034). */
export function forkTitle(title: string | null): string {
  const base = Buffer.from(title ?? "Untitled");
  let end = Math.min(base.byteLength, MAX_TITLE_BYTES - FORK_MARK.length);
  // Not within a character.
  while (((base[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return base.toString("utf8", 0, end) + FORK_MARK;
}
