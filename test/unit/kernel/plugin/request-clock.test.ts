import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RequestClock } from "../../../../kernel/src/plugin/request-clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function startClock(timeoutMs: number) {
  const onTimeout = vi.fn();
  return { clock: new RequestClock(timeoutMs, onTimeout), onTimeout };
}

test("it runs out after its time", () => {
  const { onTimeout } = startClock(100);
  vi.advanceTimersByTime(99);
  expect(onTimeout).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onTimeout).toHaveBeenCalledOnce();
});

test("[E-107] while it is held no time passes, and what was left is left", () => {
  const { clock, onTimeout } = startClock(100);
  vi.advanceTimersByTime(60);
  clock.hold();
  vi.advanceTimersByTime(1_000_000);
  clock.release();
  vi.advanceTimersByTime(39);
  expect(onTimeout).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(onTimeout).toHaveBeenCalledOnce();
});

test("of several holds the last one lets it go on", () => {
  const { clock, onTimeout } = startClock(100);
  clock.hold();
  clock.hold();
  clock.release();
  vi.advanceTimersByTime(1000);
  expect(onTimeout).not.toHaveBeenCalled();
  clock.release();
  vi.advanceTimersByTime(100);
  expect(onTimeout).toHaveBeenCalledOnce();
});

test("once stopped it never runs out, whatever is released later", () => {
  const { clock, onTimeout } = startClock(100);
  clock.hold();
  clock.stop();
  clock.release();
  vi.advanceTimersByTime(1000);
  expect(onTimeout).not.toHaveBeenCalled();
});
