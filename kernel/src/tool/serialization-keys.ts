import { untilAborted } from "../support/deadline.ts";
import type { KeyMutex } from "../support/key-mutex.ts";

/** `file:` and `path:` keys exclude each other over all plugins, any other key within its plugin (E-082). */
export function scopeKeys(plugin: string, keys: readonly string[]): string[] {
  return keys.map((key) => (/^(?:file|path):/.test(key) ? key : `${plugin}\0${key}`));
}

/** Keys of a static preparation come from arguments, so they never claim a kernel-wide name. */
export function argumentKeys(plugin: string, values: readonly string[]): string[] {
  return values.map((value) => `${plugin}\0=${value}`);
}

/** Waits its turn for every key; rejects with `cancelled` when `signal` aborts first. */
export async function holdKeys(
  mutex: KeyMutex,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<() => void> {
  if (keys.length === 0) return () => undefined;
  const turn = mutex.acquire(keys);
  try {
    return await untilAborted(turn, signal, "the call was cancelled");
  } catch (error) {
    void turn.then((release) => release());
    throw error;
  }
}
