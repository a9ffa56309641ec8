import { randomFillSync } from "node:crypto";

const random = new Uint8Array(10);
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
  randomFillSync(random);
  const time = lastMs.toString(16).padStart(12, "0");
  const sequence = counter.toString(16).padStart(3, "0");
  const tail = Buffer.from(random).toString("hex");
  const variant = (0x80 | ((random[0] ?? 0) & 0x3f)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${sequence}-${variant}${tail.slice(2, 4)}-${tail.slice(4, 16)}` as T;
}
