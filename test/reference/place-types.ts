import * as z from "zod";
import type { Surface } from "./collect-surface.ts";
import { sentence, slug } from "./markdown.ts";
import type { SchemaTable } from "./schema-table.ts";
import type { Schema } from "./schema-words.ts";

export const NOTICE =
  "<!-- Written by `npm run reference` from sdk/src/protocol; edit the docstrings there. -->";

/** A page before its types have their places. */
export interface Draft {
  readonly file: string;
  readonly title: string;
  readonly about: string;
  readonly body: readonly string[];
  /** Types that the page begins with. */
  readonly types?: readonly string[];
}

/** Describes every type once: on the first page that needs it, or with the other plain values. */
export function placeTypes(
  drafts: readonly Draft[],
  surface: Surface,
  schemas: SchemaTable,
): [string, string][] {
  const home = new Map<string, string>();
  const plain = new Set<string>();
  const describe = (name: string) => {
    const docs = surface.docsOf(name);
    const schema = surface.schemas.get(name);
    const body = schema === undefined ? "" : schemas.describe(schema, docs);
    return [`## ${name}`, ...(docs.text === undefined ? [] : [sentence(docs.text)]), body].join(
      "\n\n",
    );
  };
  const pages = drafts.map(({ file, title, body, types = [] }) => {
    const sections = [...body];
    const open = [...types, ...body.flatMap(linkedTypes)];
    for (const name of open) {
      if (home.has(name) || plain.has(name)) continue;
      if (isPlain(surface.schemas.get(name))) {
        plain.add(name);
        continue;
      }
      home.set(name, file);
      const section = describe(name);
      sections.push(section);
      open.push(...linkedTypes(section));
    }
    return { file, title, sections };
  });
  const file = "values.md";
  for (const name of plain) home.set(name, file);
  const sections = [...plain].sort().map(describe);
  return [...pages, { file, title: "Plain values", sections }].map((page) => [
    page.file,
    `${[`${NOTICE}\n\n# ${page.title}`, ...page.sections].join("\n\n")}\n`.replace(
      /\]\(@(\w+)\)/g,
      (_, name: string) => `](${home.get(name) === page.file ? "" : home.get(name)}#${slug(name)})`,
    ),
  ]);
}

function isPlain(schema: Schema | undefined): boolean {
  return !(
    schema instanceof z.ZodObject ||
    schema instanceof z.ZodDiscriminatedUnion ||
    schema instanceof z.ZodEnum
  );
}

function linkedTypes(section: string): string[] {
  return [...section.matchAll(/\]\(@(\w+)\)/g)].map(([, name = ""]) => name);
}
