import { type CookieClient, connectDaemon } from "@cookie-agent/sdk/client";
import { isCookieError } from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/flags";
import { dataDirOption } from "./data-dir-flag.ts";
import { usageError } from "./exit-code.ts";
import { withLocalKernel } from "./open-kernel.ts";

const TOKEN_VARIABLE = "COOKIE_DAEMON_TOKEN";

/** The options of every command that can work on a daemon (C 7.1). */
export const attachFlags = {
  url: string({ description: "address of the daemon to work on", helpValue: "ws://…" }),
  token: string({
    description: `its token, the first line that it printed; better in ${TOKEN_VARIABLE}`,
  }),
};

interface AttachFlags {
  readonly url: string | undefined;
  readonly token: string | undefined;
  /** Of a kernel in this process; a daemon has its own. */
  readonly "data-dir"?: string | undefined;
}

/** A client for one command: of a daemon where one is named, else of a kernel in this process (C 7.1). */
export async function withClient<T>(
  flags: AttachFlags,
  work: (client: CookieClient) => Promise<T>,
): Promise<T> {
  if (namesDaemon(flags)) return withDaemon(flags, work);
  return withLocalKernel(dataDirOption(flags["data-dir"]), ({ client }) => work(client));
}

/** A client of the daemon, for what only a process that goes on can do. */
export async function withDaemon<T>(
  flags: AttachFlags,
  work: (client: CookieClient) => Promise<T>,
): Promise<T> {
  if (flags["data-dir"] !== undefined) {
    throw usageError(
      "--data-dir is for a kernel of this command; a daemon is started with its own",
    );
  }
  const client = await connect(flags.url, requireToken(flags.token));
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

function namesDaemon({ url, token }: AttachFlags): boolean {
  return [url, token, process.env[TOKEN_VARIABLE]].some((given) => given !== undefined);
}

function requireToken(flag: string | undefined): string {
  const token = flag ?? process.env[TOKEN_VARIABLE];
  if (token === undefined) {
    throw usageError(
      `a daemon wants its token, the first line that it printed: set ${TOKEN_VARIABLE}, or give --token`,
    );
  }
  if (token === "") throw usageError(`${TOKEN_VARIABLE} is empty; set it to the token or unset it`);
  return token;
}

async function connect(url: string | undefined, token: string): Promise<CookieClient> {
  try {
    return await connectDaemon({ ...(url !== undefined && { url }), token });
  } catch (error) {
    if (isCookieError(error, "invalid_address")) throw usageError(error.message);
    throw error;
  }
}
