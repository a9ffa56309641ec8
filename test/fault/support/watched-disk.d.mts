/** One change of the disk; `position` null is the end of the file. */
export type DiskChange =
  | { readonly kind: "create" | "sync" | "mkdir" | "remove"; readonly path: string }
  | {
      readonly kind: "write";
      readonly path: string;
      readonly bytes: Buffer;
      readonly position: number | null;
    }
  | { readonly kind: "truncate"; readonly path: string; readonly length: number }
  | { readonly kind: "rename"; readonly path: string; readonly to: string };

export interface DiskWatch {
  /** What it throws is what the program gets instead of the change. */
  before?(change: DiskChange): void;
  after?(change: DiskChange): void;
}

/** Watches a canonical directory and everything below it until the result is called. */
export function watchDisk(directory: string, watch: DiskWatch): () => void;
export function writeHalf(change: DiskChange): void;
export function isAppend(change: DiskChange): boolean;
