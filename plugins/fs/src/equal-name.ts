import { readdirSync } from "node:fs";
import { ToolError } from "@cookie-agent/sdk/plugin";

const NON_ASCII = /[^\x00-\x7f]/;

/**
 * The one entry of a folder that equals an absent name under Unicode normalization, if there is one.
 * Two of them are `execution_failed`, listing both.
 */
export function equalName(folder: string, name: string): string | undefined {
  if (!NON_ASCII.test(name)) return undefined;
  const wanted = name.normalize("NFC");
  const found = entryNames(folder)
    .filter((entry) => entry.normalize("NFC") === wanted)
    .sort();
  if (found.length <= 1) return found[0];
  const spelled = found.map((entry) => `${entry} (${spellOut(entry)})`).join(", ");
  throw new ToolError(
    "execution_failed",
    `${folder} has no entry spelled exactly ${name}, but ${found.length} that look the same: ${spelled}`,
  );
}

/** What a result says when such an entry was used. */
export function respellingNote(names: readonly string[]): string {
  return names.map((name) => `(used the existing name ${name}: ${spellOut(name)})`).join("\n");
}

function spellOut(name: string): string {
  return name.replace(/[^\x00-\x7f]/gu, (character) => {
    const codePoint = character.codePointAt(0) ?? 0;
    return `<U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

function entryNames(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // An unlistable folder has no second spelling to offer; the name is simply absent.
    return [];
  }
}
