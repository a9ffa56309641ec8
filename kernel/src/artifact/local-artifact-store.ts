import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import * as files from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { CookieError, type Digest, SessionId } from "@cookie-agent/sdk/protocol";
import { sha256Hex } from "../support/digest.ts";
import { tryLockDescriptor } from "../support/file-lock.ts";
import type {
  ArtifactPlace,
  ArtifactStore,
  CaptureFile,
  OpenedArtifact,
  StoredArtifact,
} from "./artifact-store.ts";
import { digestFile } from "./digest-file.ts";
import { TemporaryFile } from "./temporary-file.ts";
import { UnsyncedNames } from "./unsynced-names.ts";

const SHARED_DIRECTORY = "artifacts.shared";
const TREE_DIRECTORY = "artifacts";
const TEMPORARY_NAME = /^\.(?:capture-|[0-9a-f]{64}\.).*\.tmp$/;
const TEMPORARY_AGE_MS = 60 * 60 * 1000;
/** Digests whose content this process has checked; forgetting some only costs a second check. */
const MAX_CHECKED = 16_384;

/** The artifact store in the files of one project: `sessions/<workdirkey>` (S 3.1). */
export function createLocalArtifactStore(options: { storeDir: string }): ArtifactStore {
  return new LocalArtifactStore(options.storeDir);
}

class LocalArtifactStore implements ArtifactStore {
  readonly #storeDir: string;
  readonly #checked = new Map<string, StoredArtifact>();
  /** By directory: what was published there and may not be named in a log yet (S-112). */
  readonly #published = new Map<string, Set<Digest>>();
  /** By directory: what was old and referred to when it was last looked for. */
  readonly #live = new Map<string, Set<Digest>>();
  readonly #names = new UnsyncedNames();

  constructor(storeDir: string) {
    this.#storeDir = storeDir;
  }

  async beginCapture(rootId: SessionId, channel = 0): Promise<CaptureFile> {
    const name = `.capture-${randomUUID()}-output${channel}.tmp`;
    const file = await TemporaryFile.create(this.#directoryOf(rootId), name);
    return {
      get byteLength() {
        return file.byteLength;
      },
      append: (...parts) => file.append(...parts),
      seal: () => file.seal(),
      publish: () => this.#publish(file),
      discard: () => file.discard(),
    };
  }

  async put(rootId: SessionId, bytes: Uint8Array): Promise<StoredArtifact> {
    const directory = this.#directoryOf(rootId);
    const sha256 = sha256Hex(bytes);
    const target = join(directory, sha256);
    this.#guard(directory, sha256);
    const known = this.#checked.get(target);
    if (known !== undefined && refresh(target, known.byteLength)) {
      this.#names.add(directory);
      return known;
    }
    const file = await TemporaryFile.create(directory, `.${sha256}.${randomUUID()}.tmp`);
    try {
      await file.append(bytes);
      await this.#publish(file);
    } finally {
      file.discard();
    }
    return file.seal();
  }

  async syncNames(rootId: SessionId): Promise<void> {
    await this.#names.sync(this.#treeDirectory(rootId));
    await this.#names.sync(join(this.#storeDir, SHARED_DIRECTORY));
  }

  async open(rootId: SessionId, sha256: Digest): Promise<OpenedArtifact> {
    let corrupt = false;
    for await (const directory of this.#searchPath(rootId)) {
      const opened = await this.#openIn(directory, sha256);
      if (opened === "corrupt") corrupt = true;
      else if (opened !== "missing") return opened;
    }
    if (corrupt) {
      throw new CookieError("artifact_corrupt", `artifact ${sha256} does not match its digest`);
    }
    throw new CookieError("artifact_missing", `there is no artifact ${sha256} in this project`);
  }

  async locate(
    rootId: SessionId,
    digests: ReadonlySet<Digest>,
  ): Promise<Map<Digest, ArtifactPlace>> {
    const places = new Map<Digest, ArtifactPlace>();
    if (digests.size === 0) return places;
    for await (const directory of this.#searchPath(rootId)) {
      for (const name of await listNames(directory)) {
        if (digests.has(name) && !places.has(name)) places.set(name, this.#placeOf(directory));
      }
    }
    return places;
  }

  async collect(
    place: ArtifactPlace,
    mentioned: (candidates: ReadonlySet<Digest>) => Promise<ReadonlySet<Digest>>,
  ): Promise<readonly Digest[]> {
    const { collectArtifacts } = await import("./collect-artifacts.ts");
    const directory = this.#directoryAt(place);
    const known = this.#live.get(directory) ?? new Set<Digest>();
    const { removed, live } = await collectArtifacts({
      directory,
      manifestDirectories: place === "shared" ? await this.#treeDirectories() : [],
      isExempt: (digest) =>
        known.has(digest) || this.#published.get(directory)?.has(digest) === true,
      mentioned,
    });
    for (const digest of live) known.add(digest);
    this.#live.set(directory, known);
    for (const digest of removed) this.#checked.delete(join(directory, digest));
    return removed;
  }

  release(place: ArtifactPlace): void {
    this.#published.delete(this.#directoryAt(place));
  }

  async sweepTemporaries(): Promise<void> {
    const oldest = Date.now() - TEMPORARY_AGE_MS;
    const directories = [
      join(this.#storeDir, SHARED_DIRECTORY),
      ...(await this.#treeDirectories()),
    ];
    for (const directory of directories) {
      for (const name of await listNames(directory)) {
        if (TEMPORARY_NAME.test(name)) await sweep(join(directory, name), oldest);
      }
    }
  }

  async #publish(file: TemporaryFile): Promise<void> {
    const artifact = file.seal();
    const target = join(file.directory, artifact.sha256);
    this.#guard(file.directory, artifact.sha256);
    if ((await this.#holds(target, artifact)) && refresh(target, artifact.byteLength)) {
      file.discard();
    } else {
      await file.moveTo(target);
    }
    // Also for what was there: who put it there may have died before its name was durable.
    this.#names.add(file.directory);
  }

  /** Whether `target` is there and, checked once per process, holds what its name says. */
  async #holds(target: string, artifact: StoredArtifact): Promise<boolean> {
    if (this.#checked.has(target)) return true;
    // Nearly every output is new, and asking here costs less than asking another thread.
    if (!fs.existsSync(target)) return false;
    const opened = await openRegular(target);
    if (opened === undefined) return false;
    try {
      const found = await digestFile(opened.fd);
      if (found.sha256 !== artifact.sha256) return false;
      this.#remember(target, found);
      return true;
    } finally {
      await opened.close();
    }
  }

  async #openIn(
    directory: string,
    sha256: Digest,
  ): Promise<OpenedArtifact | "missing" | "corrupt"> {
    const path = join(directory, sha256);
    const handle = await openRegular(path);
    if (handle === undefined) return "missing";
    let found = this.#checked.get(path);
    try {
      if (found === undefined) {
        found = await digestFile(handle.fd);
        if (found.sha256 !== sha256) {
          await handle.close();
          return "corrupt";
        }
        this.#remember(path, found);
      }
    } catch (error) {
      await handle.close();
      throw new CookieError("execution_failed", `artifact ${sha256} cannot be read`, {
        cause: error,
      });
    }
    return {
      byteLength: found.byteLength,
      lineCount: found.lineCount,
      read: async (position, length) => {
        const buffer = Buffer.allocUnsafe(length);
        const { bytesRead } = await handle.read(buffer, 0, length, position);
        return buffer.subarray(0, bytesRead);
      },
      close: () => handle.close(),
    };
  }

  async *#searchPath(rootId: SessionId): AsyncIterable<string> {
    const own = this.#treeDirectory(rootId);
    yield own;
    yield join(this.#storeDir, SHARED_DIRECTORY);
    for (const directory of await this.#treeDirectories()) if (directory !== own) yield directory;
  }

  async #treeDirectories(): Promise<string[]> {
    const names = await listNames(this.#storeDir);
    return names.flatMap((name) => {
      const rootId = SessionId.safeParse(name);
      return rootId.success ? [this.#treeDirectory(rootId.data)] : [];
    });
  }

  #guard(directory: string, digest: Digest): void {
    const guarded = this.#published.get(directory);
    if (guarded === undefined) this.#published.set(directory, new Set([digest]));
    else guarded.add(digest);
  }

  #directoryAt(place: ArtifactPlace): string {
    return place === "shared" ? join(this.#storeDir, SHARED_DIRECTORY) : this.#treeDirectory(place);
  }

  #placeOf(directory: string): ArtifactPlace {
    const root = SessionId.safeParse(basename(dirname(directory)));
    return root.success ? root.data : "shared";
  }

  #treeDirectory(rootId: SessionId): string {
    return join(this.#storeDir, rootId, TREE_DIRECTORY);
  }

  /** Output of a root that has no folder is unplaced and goes to the shared store. */
  #directoryOf(rootId: SessionId): string {
    const placed = fs.existsSync(join(this.#storeDir, rootId));
    const directory = placed ? this.#treeDirectory(rootId) : join(this.#storeDir, SHARED_DIRECTORY);
    try {
      // not recursive: a store that somebody removed must not come back half made
      fs.mkdirSync(directory, { mode: 0o700 });
    } catch (error) {
      if (!fs.existsSync(directory)) throw noFolder(error);
    }
    return directory;
  }

  #remember(path: string, artifact: StoredArtifact): void {
    if (this.#checked.size >= MAX_CHECKED) this.#checked.clear();
    this.#checked.set(path, artifact);
  }
}

function noFolder(cause: unknown): CookieError {
  return new CookieError("execution_failed", "the artifact folder cannot be created", { cause });
}

/** Makes an artifact young again (T-146); false when it is not there as it should be. */
function refresh(path: string, byteLength: number): boolean {
  const stat = fs.lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile() || stat.size !== byteLength) return false;
  const now = new Date();
  try {
    fs.utimesSync(path, now, now);
    return true;
  } catch {
    return false;
  }
}

async function openRegular(path: string): Promise<files.FileHandle | undefined> {
  const flags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
  try {
    const handle = await files.open(path, flags);
    if ((await handle.stat()).isFile()) return handle;
    await handle.close();
  } catch {
    // Unreadable is as good as missing to whoever asked for the digest.
  }
  return undefined;
}

async function sweep(path: string, oldest: number): Promise<void> {
  try {
    const handle = await files.open(path, fs.constants.O_RDWR | fs.constants.O_NOFOLLOW);
    try {
      const { mtimeMs } = await handle.stat();
      if (mtimeMs < oldest && (await tryLockDescriptor(handle.fd)))
        await files.rm(path, { force: true });
    } finally {
      await handle.close();
    }
  } catch {
    // Another process was faster, or the file is not ours to touch; it is looked at again next time.
  }
}

async function listNames(directory: string): Promise<string[]> {
  try {
    return await files.readdir(directory);
  } catch {
    return [];
  }
}
