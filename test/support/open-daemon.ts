import { randomUUID } from "node:crypto";
import { type ConnectionState, type CookieClient, connectDaemon } from "@cookie-agent/sdk/client";
import {
  type ClientKey,
  type PermissionMode,
  type RunId,
  type RunSelection,
  RunStart,
  SessionCreate,
  type SessionId,
  SessionSetPermissionMode,
} from "@cookie-agent/sdk/protocol";
import { onTestFinished } from "vitest";
import { type ModelServer, startModelServer } from "./model-server.ts";
import { configure, type TestKernelOptions } from "./open-test-kernel.ts";
import {
  type CookieOptions,
  type CookieProcess,
  type CookieResult,
  runCookie,
  startCookie,
} from "./run-cookie.ts";
import { createTempProject, type TempProject } from "./temp-project.ts";

export interface TestDaemonOptions extends Omit<TestKernelOptions, "on" | "env"> {
  /** Of a daemon that was there before; its configuration is kept. */
  readonly on?: Pick<TestDaemon, "project" | "server">;
  /** One that is free by default. */
  readonly port?: number;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The real `cookie daemon` in a project of its own, with a scripted model; gone after the test. */
export interface TestDaemon {
  readonly project: TempProject;
  readonly server: ModelServer;
  readonly process: CookieProcess;
  readonly token: string;
  readonly url: string;
  readonly selection: RunSelection;
  connect(onConnection?: (state: ConnectionState) => void): Promise<CookieClient>;
  /** Another command, attached by its environment. */
  cookie(args: readonly string[], options?: CookieOptions): Promise<CookieResult>;
  startRun(
    client: CookieClient,
    input: string,
    options?: { session?: SessionId; mode?: PermissionMode },
  ): Promise<{ sessionId: SessionId; runId: RunId }>;
  /** Asks it to end and waits until it has. */
  stop(signal?: NodeJS.Signals): Promise<CookieResult>;
}

export async function openDaemon(options: TestDaemonOptions = {}): Promise<TestDaemon> {
  const project = options.on?.project ?? (await createTempProject());
  const server = options.on?.server ?? (await startModelServer());
  server.enqueue(...(options.answers ?? []));
  if (options.on === undefined) {
    onTestFinished(async () => {
      await server.close();
      await project.remove();
    });
    const { on: _, ...configured } = options;
    await configure(project, server, configured);
  }
  const port = String(options.port ?? 0);
  const daemon = startCookie(project, ["daemon", "--port", port, ...(options.args ?? [])], {
    ...(options.env && { env: options.env }),
  });
  onTestFinished(async () => {
    daemon.child.kill("SIGTERM");
    await daemon.result;
  });
  const [token = "", url = ""] = await firstLines(daemon);
  const clients: CookieClient[] = [];
  onTestFinished(() => {
    for (const client of clients) client.close();
  });
  const selection: RunSelection = {
    agent: "primary",
    model: { model: "custom.test/scripted", variant: null },
  };
  return {
    project,
    server,
    process: daemon,
    token,
    url,
    selection,
    async connect(onConnection) {
      const client = await connectDaemon({ url, token, ...(onConnection && { onConnection }) });
      clients.push(client);
      return client;
    },
    cookie: (args, { env, ...more } = {}) =>
      runCookie(project, [...args, "--url", url], {
        ...more,
        env: { COOKIE_DAEMON_TOKEN: token, ...env },
      }),
    async startRun(client, input, { session, mode } = {}) {
      const session_id =
        session ?? (await client.request(SessionCreate, { selection })).session.session_id;
      if (mode !== undefined) await client.request(SessionSetPermissionMode, { session_id, mode });
      const { run_id } = await client.request(RunStart, {
        session_id,
        client_run_id: randomUUID() as ClientKey,
        selection,
        input,
      });
      return { sessionId: session_id, runId: run_id };
    },
    async stop(signal = "SIGTERM") {
      daemon.child.kill(signal);
      return daemon.result;
    },
  };
}

/** The token and the address, once both are printed. */
function firstLines({ child, printed, result }: CookieProcess): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const lines = printed.stdout.split("\n");
      if (lines.length > 2) resolve(lines);
    };
    child.stdout.on("data", look);
    void result.then(({ stderr }) => reject(new Error(`the daemon ended: ${stderr}`)));
    look();
  });
}
