import { mkdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import type { DiskChange } from "./watched-disk.mjs";

/** What of the changes before a crash is there after it. */
export const CRASHES = ["killed", "lost data", "lost names"] as const;
/**
 * `killed`: all of it. `lost data`: of every file only what was synced. `lost names`: of every directory, too, only the
 * names that were synced.
 */
export type Crash = (typeof CRASHES)[number];

interface File {
  readonly kind: "file";
  current: Buffer;
  durable: Buffer;
}

interface Directory {
  readonly kind: "directory";
  readonly current: Map<string, Node>;
  durable: Map<string, Node>;
}

type Node = File | Directory;

/** A disk on which recorded changes happen again, up to a crash. */
export class SimulatedDisk {
  readonly #root: Directory = directory();
  readonly #base: string;

  /** @param base The directory that was recorded; it was empty. */
  constructor(base: string) {
    this.#base = base;
  }

  apply(change: DiskChange): void {
    const path = this.#within(change.path);
    switch (change.kind) {
      case "create":
        this.#parentOf(path).current.set(basename(path), file());
        return;
      case "mkdir":
        this.#parentOf(path).current.set(basename(path), directory());
        return;
      case "remove":
        this.#parentOf(path).current.delete(basename(path));
        return;
      case "rename": {
        const to = this.#within(change.to);
        const from = this.#parentOf(path);
        const node = from.current.get(basename(path));
        if (node === undefined) throw new Error(`nothing to rename at ${path}`);
        from.current.delete(basename(path));
        this.#parentOf(to).current.set(basename(to), node);
        return;
      }
      case "sync": {
        const node = this.#at(path);
        if (node.kind === "file") node.durable = node.current;
        else node.durable = new Map(node.current);
        return;
      }
      case "truncate": {
        const found = this.#fileAt(path);
        found.current = found.current.subarray(0, change.length);
        return;
      }
      case "write":
        write(this.#fileAt(path), change.bytes, change.position);
        return;
    }
  }

  /** Half of the bytes of a write, as an interrupted kernel leaves them; nothing of other changes. */
  applyHalf(change: DiskChange): void {
    if (change.kind !== "write") return;
    const bytes = change.bytes.subarray(0, Math.floor(change.bytes.byteLength / 2));
    this.apply({ ...change, bytes });
  }

  /** Puts what a crash leaves into an empty directory. */
  leave(target: string, crash: Crash): void {
    leaveIn(this.#root, target, crash);
  }

  #within(path: string): string {
    return relative(this.#base, path);
  }

  #at(path: string): Node {
    let node: Node = this.#root;
    for (const name of path.split("/").filter((each) => each !== "")) {
      const next: Node | undefined = node.kind === "directory" ? node.current.get(name) : undefined;
      if (next === undefined) throw new Error(`nothing at ${path}`);
      node = next;
    }
    return node;
  }

  #fileAt(path: string): File {
    const node = this.#at(path);
    if (node.kind === "directory") throw new Error(`a directory at ${path}`);
    return node;
  }

  #parentOf(path: string): Directory {
    const parent = dirname(path);
    const node = this.#at(parent === "." ? "" : parent);
    if (node.kind === "file") throw new Error(`a file at ${parent}`);
    return node;
  }
}

function leaveIn(node: Directory, target: string, crash: Crash): void {
  mkdirSync(target, { recursive: true, mode: 0o700 });
  for (const [name, child] of crash === "lost names" ? node.durable : node.current) {
    const path = join(target, name);
    if (child.kind === "directory") leaveIn(child, path, crash);
    else writeFileSync(path, crash === "killed" ? child.current : child.durable, { mode: 0o600 });
  }
}

function file(): File {
  return { kind: "file", current: Buffer.alloc(0), durable: Buffer.alloc(0) };
}

function directory(): Directory {
  return { kind: "directory", current: new Map(), durable: new Map() };
}

function write(target: File, bytes: Buffer, position: number | null): void {
  const at = position ?? target.current.byteLength;
  const next = Buffer.alloc(Math.max(target.current.byteLength, at + bytes.byteLength));
  target.current.copy(next);
  bytes.copy(next, at);
  target.current = next;
}
