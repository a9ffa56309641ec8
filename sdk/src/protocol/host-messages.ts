import * as z from "zod";
import { fromPlugin, request, toPlugin } from "./method.ts";
import { boundedText, ContextId } from "./scalars.ts";

/** Sends a message to another session of the tree; one call sends it once, however often it asks (E-124). No kernel offers it yet. */
export const MessagesSend = request(
  "host/messages/send",
  () =>
    fromPlugin({
      context_id: ContextId,
      /** `parent`, a handle or a session id. */
      to: boundedText(1, 128),
      body: boundedText(1, 1024 * 1024),
      mode: z.enum(["steer", "queue"]),
    }),
  () =>
    toPlugin({
      message_id: z.string(),
      mode: z.enum(["steer", "queue"]),
      recipient_state: z.enum(["running", "queued", "waking_finished"]),
    }),
);
