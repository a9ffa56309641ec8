import { describe, expect, test } from "vitest";
import { KeyMutex } from "../../../../kernel/src/support/key-mutex.ts";
import {
  argumentKeys,
  holdKeys,
  scopeKeys,
} from "../../../../kernel/src/tool/serialization-keys.ts";

const idle = new AbortController().signal;

describe("serialization keys", () => {
  test("[T-027] [E-082] file and path keys are shared by all plugins, any other key by none", () => {
    const keys = ["file:8:1", "path:8:1/new", "server"];
    const shared = scopeKeys("one", keys).filter((key) => scopeKeys("two", keys).includes(key));
    expect(shared).toEqual(["file:8:1", "path:8:1/new"]);
    expect(argumentKeys("one", ["file:8:1"])).not.toContain("file:8:1");
  });

  test("a call cancelled while it waits lets the next one in", async () => {
    const mutex = new KeyMutex();
    const release = await holdKeys(mutex, ["k"], idle);
    const abort = new AbortController();
    const waiting = holdKeys(mutex, ["k"], abort.signal);
    const next = holdKeys(mutex, ["k"], idle);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    release();
    (await next)();
  });
});
