import { connect } from "node:net";
import { type Check, failed, ok } from "./check.ts";

const CONNECT_TIMEOUT_MS = 5000;

export interface Endpoint {
  readonly provider: string;
  readonly url: string;
}

/** Whether each provider's host accepts a connection; nothing is sent, no credential is used. */
export function checkEndpoints(endpoints: readonly Endpoint[]): Promise<Check[]> {
  return Promise.all(endpoints.map(checkEndpoint));
}

async function checkEndpoint({ provider, url }: Endpoint): Promise<Check> {
  const name = `network ${provider}`;
  const { hostname, port, protocol } = new URL(url);
  const portNumber = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  const place = `${hostname}:${portNumber}`;
  const problem = await tryConnect(hostname.replace(/^\[|\]$/g, ""), portNumber);
  return problem === null
    ? ok(name, `${place} answers`)
    : failed(name, `${place}: ${problem}`, "check the endpoint, the server and your network");
}

function tryConnect(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (problem: string | null) => {
      socket.destroy();
      resolve(problem);
    };
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => finish(`no answer in ${CONNECT_TIMEOUT_MS} ms`));
    socket.once("connect", () => finish(null));
    socket.once("error", (error: NodeJS.ErrnoException) => finish(error.code ?? error.message));
  });
}
