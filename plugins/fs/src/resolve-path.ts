import { isAbsolute } from "node:path";
import { ToolError } from "@cookie-agent/sdk/plugin";
import { expectWellFormed } from "./well-formed.ts";

/** Where relative and home-relative paths start. */
export interface PathBase {
  readonly cwd: string;
  readonly homeDir: string;
}

const CONTROL = /\p{Cc}/u;

/**
 * Turns a path argument into an absolute path without looking at the disk (T-050).
 *
 * `~` and `~/rest` are the home directory, `.` is dropped, `..` pops. Fails with `invalid_arguments` for what is
 * no path, and with `unsupported_security` for the filesystem root and everything above it.
 */
export function resolvePath(argument: string, base: PathBase): string {
  checkPathText(argument);
  const absolute = isAbsolute(argument) ? argument : joinBase(argument, base);
  const parts: string[] = [];
  for (const part of absolute.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) {
      throw new ToolError("unsupported_security", `${argument} leads above the filesystem root`);
    }
  }
  if (parts.length === 0) {
    throw new ToolError(
      "unsupported_security",
      `${argument} is the filesystem root; name a file or folder below it`,
    );
  }
  return `/${parts.join("/")}`;
}

function checkPathText(argument: string): void {
  if (argument === "") throw invalidPath("filePath is empty");
  if (CONTROL.test(argument)) throw invalidPath("filePath holds a control character");
  expectWellFormed("filePath", argument);
}

function joinBase(argument: string, base: PathBase): string {
  if (!argument.startsWith("~")) return `${base.cwd}/${argument}`;
  if (argument.length > 1 && argument[1] !== "/") {
    throw invalidPath(
      `${argument}: home directories of other users are not expanded; use an absolute path, or ./${argument} for a file of that name`,
    );
  }
  if (!isAbsolute(base.homeDir)) {
    throw invalidPath(`${argument}: no home directory is known; use an absolute path`);
  }
  return `${base.homeDir}/${argument.slice(1)}`;
}

function invalidPath(message: string): ToolError {
  return new ToolError("invalid_arguments", message);
}
