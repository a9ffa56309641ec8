import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Why no file system can be mounted here; null when it can. */
export const noMount: string | null = tryMount();

/** A file system of its own of so many bytes, unmounted when the test ends. */
export function mountSmallDisk(
  byteLength: number,
  directory = mkdtempSync(join(tmpdir(), "cookie-disk-")),
): string {
  mount(directory, `size=${byteLength},mode=0700`);
  onTestFinished(() => unmount(directory));
  return directory;
}

/** Makes a mounted disk refuse every write. */
export function makeReadOnly(directory: string): void {
  execFileSync("/bin/mount", ["-o", "remount,ro", directory], { stdio: "ignore" });
}

function tryMount(): string | null {
  if (process.platform !== "linux") return "a tmpfs exists on Linux only";
  if (process.getuid?.() !== 0) return "mounting a tmpfs takes root";
  const directory = mkdtempSync(join(tmpdir(), "cookie-disk-"));
  try {
    mount(directory, "size=65536");
    unmount(directory);
    return null;
  } catch {
    rmSync(directory, { recursive: true, force: true });
    return "this machine lets nobody mount a tmpfs";
  }
}

function mount(directory: string, options: string): void {
  mkdirSync(directory, { recursive: true });
  execFileSync("/bin/mount", ["-t", "tmpfs", "-o", options, "tmpfs", directory], {
    stdio: "ignore",
  });
}

function unmount(directory: string): void {
  // lazily: a process that the test has just ended may still hold a file for a moment
  execFileSync("/bin/umount", ["-l", directory], { stdio: "ignore" });
  rmSync(directory, { recursive: true, force: true });
}
