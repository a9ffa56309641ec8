declare module "fs-native-extensions" {
  /** False when another open file description holds the lock; the fd must be writable. */
  export function tryLock(fd: number): boolean;
  export function unlock(fd: number): void;
}
