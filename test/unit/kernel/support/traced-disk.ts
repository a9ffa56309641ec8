import type * as files from "node:fs/promises";

/** What was made durable and what was moved, in order, as `sync <path>` and `rename <path>`. */
export const diskTrace: string[] = [];

/** The file functions of Node with `open` and `rename` telling the trace what they are used for. */
export function traceDisk(real: typeof files): typeof files {
  return {
    ...real,
    async open(path, ...rest) {
      const handle = await real.open(path, ...rest);
      const sync = handle.sync.bind(handle);
      handle.sync = () => {
        diskTrace.push(`sync ${String(path)}`);
        return sync();
      };
      return handle;
    },
    async rename(from, to) {
      await real.rename(from, to);
      diskTrace.push(`rename ${String(to)}`);
    },
  };
}
