import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { CookieError } from "../protocol/errors.ts";

const LOAD_TIMEOUT_MS = 10_000;
let loads = 0;

/**
 * Checks an entry against its digest, when one is given, and imports it. Resolves as soon as the entry has taken its
 * channel: its module goes on running for as long as it serves.
 */
export async function loadEntry(
  request: { readonly plugin: string; readonly entry: string; readonly sha256: string | null },
  options: { readonly taken: Promise<void>; report(error: unknown): void },
): Promise<void> {
  const { plugin, entry, sha256 } = request;
  if (sha256 !== null) await checkDigest(plugin, entry, sha256);
  const url = pathToFileURL(entry);
  // A module is evaluated once per URL, and an entry that comes back must serve again.
  if (loads > 0) url.searchParams.set("load", String(loads));
  loads += 1;
  let taken = false;
  let timer: NodeJS.Timeout | undefined;
  const failed = new Promise<never>((_, reject) => {
    const fail = (code: string, message: string, cause?: unknown) =>
      reject(new CookieError(code, `the entry of plugin ${plugin} ${message}`, { cause }));
    timer = setTimeout(() => fail("timeout", "did not call serve in time"), LOAD_TIMEOUT_MS);
    import(url.href).then(
      () => fail("execution_failed", "does not call serve"),
      (error: unknown) => {
        if (taken) options.report(error);
        const text = error instanceof Error ? error.message : String(error);
        fail("execution_failed", `failed to load: ${text}`, error);
      },
    );
  });
  try {
    await Promise.race([options.taken, failed]);
    taken = true;
  } finally {
    clearTimeout(timer);
    failed.catch(() => {});
  }
}

async function checkDigest(plugin: string, entry: string, expected: string): Promise<void> {
  const bytes = await readFile(entry).catch((cause: unknown) => {
    throw new CookieError("integrity_mismatch", `the entry of plugin ${plugin} cannot be read`, {
      cause,
    });
  });
  const found = createHash("sha256").update(bytes).digest("hex");
  if (found !== expected) {
    throw new CookieError(
      "integrity_mismatch",
      `the entry of plugin ${plugin} is not the file its manifest names`,
      { data: { expected, found } },
    );
  }
}
