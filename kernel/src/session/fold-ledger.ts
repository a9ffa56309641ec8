import { readLog } from "../event/read-log.ts";
import type { ArchivedSession } from "../store/usage-archive.ts";
import type { SessionSpend } from "../usage/session-spend.ts";
import { UsageLedger } from "../usage/usage-ledger.ts";

/** What a stored session has really used, from its log: the way when its cache does not say. */
export async function foldLedger(
  { sessionId, openLog }: ArchivedSession,
  beginSpend?: () => SessionSpend,
): Promise<UsageLedger> {
  const ledger = new UsageLedger(sessionId, beginSpend);
  const file = await openLog();
  try {
    for await (const batch of readLog(file.read(), sessionId)) {
      for (const item of batch) if (item.kind === "event") ledger.apply(item.event);
    }
    return ledger;
  } finally {
    await file.close();
  }
}
