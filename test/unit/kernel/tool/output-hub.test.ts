import type { SessionId, ToolCallId } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { createId } from "../../../../kernel/src/support/create-id.ts";
import { OutputHub } from "../../../../kernel/src/tool/output-hub.ts";
import type { OutputNotice } from "../../../../kernel/src/tool/output-notice.ts";
import type { OutputSubscription } from "../../../../kernel/src/tool/output-subscription.ts";
import { SESSION } from "./dispatch-fixture.ts";

const OTHER: SessionId = createId<SessionId>();

function begin(hub: OutputHub, streams: string[] = ["stdout"], sessionId = SESSION) {
  const toolCallId = createId<ToolCallId>();
  return { toolCallId, feed: hub.begin({ sessionId, toolCallId, streams }) };
}

const utf8 = (text: string) => [Buffer.from(text)];

async function take(subscription: OutputSubscription, count: number): Promise<OutputNotice[]> {
  const notices: OutputNotice[] = [];
  for await (const notice of subscription) {
    notices.push(notice);
    if (notices.length === count) break;
  }
  return notices;
}

function textOf(notices: readonly OutputNotice[]): string {
  return notices
    .flatMap((notice) =>
      notice.kind === "snapshot" ? notice.chunks : notice.kind === "delta" ? [notice] : [],
    )
    .map(({ data }) => Buffer.from(data).toString())
    .join("");
}

describe("live output", () => {
  test("[S-064] a subscriber gets a snapshot, then deltas, without loss between", async () => {
    const hub = new OutputHub();
    const { toolCallId, feed } = begin(hub);
    feed.write("stdout", utf8("é1"));
    const subscription = hub.subscribe(SESSION);
    feed.write("stdout", utf8("2"));
    const notices = await take(subscription, 2);
    expect(notices).toMatchObject([
      { kind: "snapshot", toolCallId, stream: "stdout", startOffset: 0, endOffset: 3 },
      { kind: "delta", byteOffset: 3 },
    ]);
    expect(textOf(notices)).toBe("é12");
  });

  test("[S-064] a call that begins later begins with a snapshot, of its own session only", async () => {
    const hub = new OutputHub();
    const subscription = hub.subscribe(SESSION);
    begin(hub, ["stdout"], OTHER).feed.write("stdout", utf8("not ours"));
    const { toolCallId, feed } = begin(hub, []);
    feed.write(null, utf8("ours"));
    expect(await take(subscription, 2)).toMatchObject([
      { kind: "snapshot", toolCallId, stream: "output", chunks: [] },
      { kind: "delta", toolCallId, stream: "output" },
    ]);
    expect(hub.active(SESSION)).toEqual([{ toolCallId, streams: ["output"] }]);
  });

  test("[S-064] only the last 64 KiB of a stream are kept, and a gap says so", async () => {
    const hub = new OutputHub();
    const { feed } = begin(hub);
    for (let i = 0; i < 300; i += 1) feed.write("stdout", utf8(String(i % 10).repeat(1000)));
    const notices = await take(hub.subscribe(SESSION), 2);
    const [gap, snapshot] = notices;
    expect(gap).toMatchObject({ kind: "gap", nextOffset: 300_000 - 65_536 });
    expect(snapshot).toMatchObject({ startOffset: 300_000 - 65_536, endOffset: 300_000 });
    const whole = Array.from({ length: 300 }, (_, i) => String(i % 10).repeat(1000)).join("");
    expect(textOf(notices)).toBe(whole.slice(-65_536));
  });

  test("[S-064] a slow reader loses deltas of a stream and is told where it goes on", async () => {
    const hub = new OutputHub();
    const { feed } = begin(hub);
    const subscription = hub.subscribe(SESSION);
    for (let i = 0; i < 300; i += 1) feed.write("stdout", utf8("x"));
    const before = await firstNotices(subscription, 256, () => feed.write("stdout", utf8("y")));
    expect(before.at(254)).toMatchObject({ kind: "delta", byteOffset: 253 });
    expect(before.at(255)).toEqual(expect.objectContaining({ kind: "gap", nextOffset: 300 }));
  });

  test("[S-064] [D-072] nothing is kept of a call that has ended", async () => {
    const hub = new OutputHub();
    const ended = begin(hub).feed;
    ended.write("stdout", utf8("before"));
    ended.end();
    ended.write("stdout", utf8("after"));
    const { toolCallId } = begin(hub);
    expect(hub.active(SESSION)).toEqual([{ toolCallId, streams: ["stdout"] }]);
    expect(await take(hub.subscribe(SESSION), 1)).toMatchObject([{ toolCallId, chunks: [] }]);
  });
});

/** Reads so many notices, doing something once the queue begins to empty. */
async function firstNotices(
  subscription: OutputSubscription,
  count: number,
  onFirst: () => void,
): Promise<OutputNotice[]> {
  const notices: OutputNotice[] = [];
  for await (const notice of subscription) {
    notices.push(notice);
    if (notices.length === 200) onFirst();
    if (notices.length === count) break;
  }
  return notices;
}
