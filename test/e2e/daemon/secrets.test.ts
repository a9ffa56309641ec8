import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionCreate, ToolCallId } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import { openDaemon } from "../../support/open-daemon.ts";
import { SessionWatch } from "../../support/session-watch.ts";

const TYPED = "what-somebody-typed";

test("[D-085] [D-086] [D-087] [D-088] what is typed reaches the command and stays nowhere", async () => {
  const command = `echo ready; read -r word; [ "$word" = ${TYPED.split("").join("''")} ] && echo right`;
  const daemon = await openDaemon({
    args: ["--json"],
    answers: [
      { calls: [{ name: "bash", arguments: { command, interactive: true } }] },
      { text: "ok" },
    ],
  });
  const client = await daemon.connect();
  const { session } = await client.request(SessionCreate, { selection: daemon.selection });
  const watch = new SessionWatch(client, session.session_id, { interactive: true });
  await watch.event("session_created");
  const { runId } = await daemon.startRun(client, "Hi", { session: session.session_id });
  const { payload } = await watch.event("tool_call_started");
  const target = { runId, callId: payload.tool_call_id };
  await watch.output("ready");

  const typed = Buffer.from(`${TYPED}\n`);
  const fed = client.feedStdin(target, typed);
  expect(typed).toEqual(Buffer.alloc(typed.length));
  await fed;
  expect(await watch.end(runId)).toMatchObject({ type: "run_completed" });
  expect(watch.payloads("tool_call_terminated")[0]?.result?.output).toContain("\nright\n");

  const late = Buffer.from(TYPED);
  const noCall = ToolCallId.parse("01a22e96-4c2c-7000-8655-8661b67d0ebf");
  await expect(client.feedStdin({ runId, callId: noCall }, late)).rejects.toMatchObject({
    message: expect.not.stringContaining(TYPED),
  });
  expect(late).toEqual(Buffer.alloc(late.length));
  client.close();
  const tooLate = Buffer.from(TYPED);
  await expect(client.feedStdin(target, tooLate)).rejects.toMatchObject({ code: "closed" });
  expect(tooLate).toEqual(Buffer.alloc(tooLate.length));

  const { stderr } = await daemon.stop();
  const encoded = Buffer.from(TYPED).toString("base64").slice(0, 20);
  expect(stderr).not.toContain(TYPED);
  for (const path of await readdir(daemon.project.stateDir, { recursive: true })) {
    const text = await readFile(join(daemon.project.stateDir, path), "utf8").catch(() => "");
    expect(text.includes(TYPED) || text.includes(encoded), path).toBe(false);
  }
});
