import { CookieError } from "@cookie-agent/sdk/protocol";

/**
 * The text of a configuration file with `trust` and `integrity` set in `[plugins.<name>]`, everything else as it is.
 * Throws `invalid_params` when the entry is no table of its own, because then its lines cannot be told apart.
 */
export async function editPluginTrust(
  text: string,
  name: string,
  integrity: string,
): Promise<string> {
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  const header = lines.findIndex((line) => isHeaderOf(line, name));
  if (header < 0) throw unclear(name, integrity);
  let end = lines.findIndex((line, index) => index > header && /^\s*\[/.test(line));
  if (end < 0) end = lines.length;
  const body = lines.slice(header + 1, end);
  const settings = [
    ["trust", '"trusted"'],
    ["integrity", JSON.stringify(integrity)],
  ] as const;
  const missing: string[] = [];
  for (const [key, value] of settings) {
    const at = body.findIndex((line) => new RegExp(`^\\s*"?${key}"?\\s*=`).test(line));
    const line = body[at];
    if (line === undefined) missing.push(`${key} = ${value}`);
    else body[at] = line.replace(/=\s*("[^"]*"|'[^']*')/, `= ${value}`);
  }
  const edited = [...lines.slice(0, header + 1), ...missing, ...body, ...lines.slice(end)].join(
    newline,
  );
  await verify(text, edited, name, integrity);
  return edited;
}

function isHeaderOf(line: string, name: string): boolean {
  const match = /^\s*\[\s*plugins\s*\.\s*(?:"([^"]+)"|'([^']+)'|([\w-]+))\s*\]\s*(?:#.*)?$/.exec(
    line,
  );
  return match !== null && name === (match[1] ?? match[2] ?? match[3]);
}

/** Lines say little of what a file means, so the result counts only if it differs as it should and in nothing else. */
async function verify(before: string, after: string, name: string, integrity: string) {
  const { parse } = await import("smol-toml");
  const { isDeepStrictEqual } = await import("node:util");
  const expected = parse(before) as { plugins?: Record<string, Record<string, unknown>> };
  const entry = expected.plugins?.[name];
  if (entry === undefined) throw unclear(name, integrity);
  entry["trust"] = "trusted";
  entry["integrity"] = integrity;
  let found: unknown;
  try {
    found = parse(after);
  } catch {
    throw unclear(name, integrity);
  }
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  if (!isDeepStrictEqual(plain(found), plain(expected))) throw unclear(name, integrity);
}

function unclear(name: string, integrity: string): CookieError {
  return new CookieError(
    "invalid_params",
    `the entry of ${name} cannot be edited here; write trust = "trusted" and integrity = "${integrity}" into it`,
  );
}
