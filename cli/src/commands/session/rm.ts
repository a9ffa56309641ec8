import type { CookieClient } from "@cookie-agent/sdk/client";
import {
  type SessionId,
  SessionRemove,
  SessionTree,
  type SessionTreeNode,
} from "@cookie-agent/sdk/protocol";
import { string } from "@oclif/core/args";
import { attachFlags, withClient } from "../../attach.ts";
import { defineCommand } from "../../command.ts";
import { dataDirFlag } from "../../data-dir-flag.ts";
import { ExitCode, ExitError, usageError } from "../../exit-code.ts";
import { describeError } from "../../report-error.ts";
import { requireSessionId } from "../../session-id.ts";
import { print, printError, printJson } from "../../standard-streams.ts";
import { switchFlag } from "../../switch-flag.ts";
import { ask } from "../../workspace-question.ts";

export const removeSession = defineCommand({
  summary: "Remove a session with all that was delegated from it, for good.",
  description:
    "Its log and its output are deleted; files of the project are not touched. A session that runs, or that another process holds, is left alone.",
  args: {
    id: string({ description: "session id", required: true, multiple: true, ignoreStdin: true }),
  },
  flags: { yes: switchFlag("do not ask"), ...attachFlags, "data-dir": dataDirFlag },
  async run({ args, flags }) {
    const ids = [...new Set(args.id)].map((id) => requireSessionId(id, "session rm"));
    if (!flags.yes && !(process.stdin.isTTY && process.stderr.isTTY)) {
      throw usageError("there is no terminal to ask on; add --yes to remove without a question");
    }
    const removed = await withClient(flags, async (client) => {
      if (!flags.yes) await confirm(client, ids);
      return removeAll(client, ids);
    });
    if (flags.json) printJson(removed);
    else {
      for (const { session_id, message } of removed.failed) printError(`${session_id}: ${message}`);
      for (const id of removed.removed) print(`removed ${id}`);
    }
    return removed.failed.length === 0 ? ExitCode.success : ExitCode.failure;
  },
});

interface Removal {
  readonly removed: SessionId[];
  readonly failed: {
    readonly session_id: SessionId;
    readonly code: string;
    readonly message: string;
  }[];
}

/** One that cannot be removed does not keep the others. */
async function removeAll(client: CookieClient, ids: readonly SessionId[]): Promise<Removal> {
  const removal: Removal = { removed: [], failed: [] };
  for (const session_id of ids) {
    try {
      removal.removed.push(...(await client.request(SessionRemove, { session_id })).session_ids);
    } catch (error) {
      const { code, message } = describeError(error);
      removal.failed.push({ session_id, code, message });
    }
  }
  return removal;
}

/** The default is no. */
async function confirm(client: CookieClient, ids: readonly SessionId[]): Promise<void> {
  for (const session_id of ids) {
    const { tree } = await client.request(SessionTree, { session_id });
    const below = countBelow(tree);
    const more =
      below === 0 ? "" : `, with ${below} delegated ${below === 1 ? "session" : "sessions"}`;
    printError(`${session_id}  ${tree.session.title ?? ""}${more}`);
  }
  const question =
    ids.length === 1 ? "Remove it for good? [y/N] " : `Remove these ${ids.length} for good? [y/N] `;
  if ((await ask(question)) === "yes") return;
  throw new ExitError(ExitCode.failure, "declined", "nothing was removed");
}

function countBelow({ children }: SessionTreeNode): number {
  return children.reduce((count, child) => count + 1 + countBelow(child), 0);
}
