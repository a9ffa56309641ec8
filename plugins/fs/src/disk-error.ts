import { ToolError } from "@cookie-agent/sdk/plugin";

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EBUSY: "the file is in use",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file is too large for this filesystem",
  EIO: "the disk reported an error",
  EMFILE: "too many open files",
  ENAMETOOLONG: "the name is too long",
  ENOENT: "no such file or folder",
  ENOSPC: "no space left on the disk",
  ENOTDIR: "not a folder",
  EPERM: "the operation is not permitted",
  EROFS: "the filesystem is read-only",
};

/** An operating-system error as `execution_failed`; our own errors pass unchanged. */
export function diskError(what: string, error: unknown): ToolError {
  if (error instanceof ToolError) return error;
  const code = errnoOf(error);
  const reason = code === undefined ? "unexpected error" : (REASONS[code] ?? code);
  return new ToolError("execution_failed", `${what}: ${reason}`, { cause: error });
}

/** The error's system code, such as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}
