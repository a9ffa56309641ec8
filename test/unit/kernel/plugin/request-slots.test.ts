import { CookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import { RequestSlots } from "../../../../kernel/src/plugin/request-slots.ts";
import { never } from "./open-host.ts";

describe("RequestSlots", () => {
  test("[E-052] a free place is taken at once, further requests wait in order", async () => {
    const slots = new RequestSlots(1, 2);
    expect(slots.take(never())).toBeUndefined();
    const order: number[] = [];
    const waiting = [1, 2].map((n) => slots.take(never())?.then(() => order.push(n)));
    slots.release();
    await waiting[0];
    expect(order).toEqual([1]);
    slots.release();
    await waiting[1];
    expect(order).toEqual([1, 2]);
    slots.release();
    expect(slots.idle).toBe(true);
  });

  test("[E-052] a full queue answers busy", async () => {
    const slots = new RequestSlots(1, 1);
    void slots.take(never());
    const waiting = slots.take(never());
    await expect(slots.take(never())).rejects.toMatchObject({ code: "busy" });
    slots.release();
    await waiting;
  });

  test("[E-105] a request cancelled in the queue leaves it", async () => {
    const slots = new RequestSlots(1, 8);
    void slots.take(never());
    const stop = new AbortController();
    const waiting = slots.take(stop.signal);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "cancelled" });
    slots.release();
    expect(slots.idle).toBe(true);
  });

  test("closing fails everyone who waits and everyone who comes", async () => {
    const slots = new RequestSlots(1, 8);
    void slots.take(never());
    const waiting = slots.take(never());
    slots.close(new CookieError("plugin_crashed", "gone"));
    await expect(waiting).rejects.toMatchObject({ code: "plugin_crashed" });
    await expect(slots.take(never())).rejects.toMatchObject({ code: "plugin_crashed" });
  });
});
