import * as z from "zod";
import { SessionMeta } from "./client-methods.ts";
import { request } from "./method.ts";
import { ClientKey, SessionId } from "./scalars.ts";

const session = { session_id: SessionId };
/** The last event that counts: the number of an event of the log. */
const throughSeq = { through_seq: z.int().min(1) };

/** What a person makes of a title; after a `reset` the session names itself again (S-028). */
export const TitleRequest = z.discriminatedUnion("type", [
  /** Something of it shown, at most 512 bytes, no control characters; else `invalid_title`. */
  z.strictObject({ type: z.literal("set"), title: z.string() }),
  z.strictObject({ type: z.literal("clear") }),
  z.strictObject({ type: z.literal("reset") }),
]);
export type TitleRequest = z.infer<typeof TitleRequest>;

/** Titles a session. The same `client_rename_id` with the same change changes nothing (S-033). */
export const SessionRename = request(
  "session.rename",
  () => z.strictObject({ ...session, client_rename_id: ClientKey, change: TitleRequest }),
  () => z.object({ client_rename_id: ClientKey, session: SessionMeta }),
);

/** Lets what came after an event no longer count; concerns the conversation only, never files (S-229, S-272). */
export const SessionRevert = request(
  "session.revert",
  () => z.strictObject({ ...session, ...throughSeq }),
  () =>
    z.object({
      session: SessionMeta,
      /** What a plugin wants the next input to say. */
      instructions_override: z.string().optional(),
    }),
);

/** A new session with the conversation of another one up to an event, that event included (S-230). */
export const SessionFork = request(
  "session.fork",
  () => z.strictObject({ ...session, ...throughSeq }),
  () => z.object({ session_id: SessionId }),
);
