import { ConfigError, type ConfigLayer } from "./config-error.ts";
import { type BoundedRead, readBoundedFile } from "./read-bounded-file.ts";

export interface ConfigFile {
  readonly layer: ConfigLayer;
  readonly path: string;
  readonly maxBytes: number;
}

/**
 * Reads a file of a layer; undefined when it is not there, and cut off beyond the limit.
 * Links count in the user layer only: a digest covers the text of a link, not what it points at.
 */
export async function readConfigFile(file: ConfigFile): Promise<Uint8Array | undefined> {
  const { layer, path, maxBytes } = file;
  let read: BoundedRead;
  try {
    read = await readBoundedFile(path, maxBytes, { followLinks: layer === "user" });
  } catch (error) {
    const { code = "unknown reason" } = error as NodeJS.ErrnoException;
    const problem = `cannot be read (${code})`;
    throw new ConfigError({ code: "io", layer, path, problem, advice: "check its rights" });
  }
  switch (read.kind) {
    case "missing":
      return undefined;
    case "bytes":
      return read.bytes;
    case "too_large":
      return read.head;
    case "not_regular":
      throw new ConfigError({
        code: "unsafe_path",
        layer,
        path,
        problem: layer === "user" ? "is not a regular file" : "is not a regular file or is a link",
        advice: "put a file in its place",
      });
  }
}
