import { createRequire } from "node:module";
import { hasCode } from "./has-code.ts";

/** True when the whole open file is locked for us now; false when someone else holds it. */
export type TryLock = (fd: number) => boolean;

/** The native part of the lock package: throws `EAGAIN` when someone else holds the range. */
interface NativeLock {
  tryLock(fd: number, offset: number, length: number, exclusive: boolean): void;
}

let loaded: Promise<TryLock> | undefined;

/** Loads the native lock once. */
export function loadTryLock(): Promise<TryLock> {
  loaded ??= load();
  return loaded;
}

/** The package searches its folders for the binary, a tenth of a cold start; so the usual place comes first. */
async function load(): Promise<TryLock> {
  const native = requirePrebuilt();
  if (native === undefined) return (await import("fs-native-extensions")).tryLock;
  return (fd) => {
    try {
      native.tryLock(fd, 0, 0, true);
      return true;
    } catch (error) {
      if (hasCode(error, "EAGAIN")) return false;
      throw error;
    }
  };
}

function requirePrebuilt(): NativeLock | undefined {
  const { platform, arch } = process;
  const folder = `fs-native-extensions/prebuilds/${platform}-${arch}`;
  try {
    const require = createRequire(import.meta.url);
    const native: unknown = require(`${folder}/fs-native-extensions.node`);
    return isNativeLock(native) ? native : undefined;
  } catch {
    return undefined;
  }
}

function isNativeLock(value: unknown): value is NativeLock {
  return (
    typeof value === "object" &&
    value !== null &&
    "tryLock" in value &&
    typeof value.tryLock === "function"
  );
}
