import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { startJanitor } from "../../../../kernel/src/session/janitor.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("[S-100] the janitor", () => {
  test("comes every 60 seconds until it is stopped", async () => {
    const tidy = vi.fn(async () => undefined);
    const stop = startJanitor(tidy, () => undefined);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(tidy).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(tidy).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(120_000);
    expect(tidy).toHaveBeenCalledTimes(3);
    stop();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(tidy).toHaveBeenCalledTimes(3);
  });

  test("goes on after a failure, which is told, and never works twice at once", async () => {
    const failures: unknown[] = [];
    let finish: () => void = () => undefined;
    const tidy = vi
      .fn<() => Promise<void>>()
      .mockRejectedValueOnce(new Error("disk"))
      .mockImplementationOnce(
        () =>
          new Promise((resolve) => {
            finish = resolve;
          }),
      )
      .mockResolvedValue(undefined);
    const stop = startJanitor(tidy, (error) => failures.push(error));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(failures).toEqual([new Error("disk")]);
    await vi.advanceTimersByTimeAsync(180_000);
    expect(tidy).toHaveBeenCalledTimes(2);
    finish();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(tidy).toHaveBeenCalledTimes(3);
    stop();
  });
});
