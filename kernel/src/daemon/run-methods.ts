import {
  CookieError,
  RunCancel,
  RunRecallSteer,
  RunStart,
  RunSteer,
  RunToolStdin,
} from "@cookie-agent/sdk/protocol";
import { decodeBase64 } from "../support/decode-base64.ts";
import type { ClientServices } from "./client-services.ts";
import type { Route } from "./route.ts";

/** Decoded bytes of one stdin write (E-106). */
const MAX_STDIN_BYTES = 64 * 1024;

export function registerRunMethods(route: Route, { sessions }: ClientServices): void {
  route(RunStart, async ({ session_id, client_run_id, selection, input, max_turns }) => {
    const actor = await sessions.adopt(session_id);
    const maxTurns = max_turns ?? null;
    const request = { clientRunId: client_run_id, selection, input, maxTurns };
    return { run_id: await actor.startRun(request) };
  });
  route(RunSteer, ({ run_id, input }) => sessions.ofRun(run_id).inputs.steer(run_id, input));
  route(RunRecallSteer, async ({ run_id }) => ({
    recalled: await sessions.ofRun(run_id).inputs.recall(run_id),
  }));
  route(RunCancel, ({ run_id, reason }) => ({
    cancelled: sessions.cancelRun(run_id, reason ?? null),
  }));
  route(RunToolStdin, async ({ run_id, call_id, data, eof }) => {
    const bytes = data === null || data === undefined ? null : stdinBytes(data);
    await sessions.ofRun(run_id).inputs.feedStdin(run_id, call_id, bytes, eof);
    return { accepted: true };
  });
}

function stdinBytes(data: string): Uint8Array {
  const bytes = decodeBase64(data);
  if (bytes === undefined) throw new CookieError("invalid_params", "data: expected base64");
  if (bytes.byteLength > MAX_STDIN_BYTES) {
    throw new CookieError("invalid_params", `data: at most ${MAX_STDIN_BYTES} bytes per write`);
  }
  return bytes;
}
