// A client of a daemon in a process of its own: starts a run, says which, and stays. Run by path.
import { connectDaemon } from "@cookie-agent/sdk/client";
import { RunStart, SessionCreate } from "@cookie-agent/sdk/protocol";

const { url, token, selection } = JSON.parse(process.env.COOKIE_TEST_CLIENT);
const client = await connectDaemon({ url, token });
const { session } = await client.request(SessionCreate, { selection });
const { run_id } = await client.request(RunStart, {
  session_id: session.session_id,
  client_run_id: "from-another-process",
  selection,
  input: "Hi",
});
process.stdout.write(`${JSON.stringify({ sessionId: session.session_id, runId: run_id })}\n`);
for await (const _ of client.subscribe(session.session_id));
