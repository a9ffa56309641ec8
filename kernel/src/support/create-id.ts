import { randomFillSync } from "node:crypto";

const RANDOM_BYTES = 10;
/** Drawn for many ids at once: asking for ten bytes costs as much as for thousands. */
const pool = Buffer.alloc(RANDOM_BYTES * 256);
let used = pool.byteLength;
let lastMs = 0;
let counter = 0;

/** A UUIDv7 whose order is the order of creation within this process (S-007). */
export function createId<T extends string>(): T {
  const nowMs = Date.now();
  if (nowMs > lastMs) {
    lastMs = nowMs;
    counter = 0;
  } else {
    counter += 1;
    if (counter > 0xfff) {
      lastMs += 1;
      counter = 0;
    }
  }
  if (used === pool.byteLength) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.toString("hex", used, used + RANDOM_BYTES);
  const variant = (0x80 | ((pool[used] ?? 0) & 0x3f)).toString(16);
  used += RANDOM_BYTES;
  const time = lastMs.toString(16).padStart(12, "0");
  const sequence = counter.toString(16).padStart(3, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence}-${variant}${random.slice(2, 4)}-${random.slice(4, 16)}` as T;
}
