import * as z from "zod";
import { code, sentence, table } from "./markdown.ts";
import { type Docs, NO_DOCS } from "./read-docstrings.ts";
import { rulesOf, type Schema, unwrap } from "./schema-words.ts";

/** The schemas that have a name of their own, and what is said about each. */
export interface Names {
  nameOf(schema: Schema): string | undefined;
  docsOf(name: string): Docs;
}

interface Row {
  /** As `plugin.name`, `tools[].name`, with a `?` where it may be absent. */
  readonly member: string;
  readonly type: string;
  readonly meaning: string;
}

/** Puts schemas into words and tables; a schema with a name is linked as `[Name](@Name)`. */
export class SchemaTable {
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  /** The body of a section about one schema: its table, its values or its rules. */
  describe(schema: Schema, docs: Docs): string {
    if (schema instanceof z.ZodObject) return this.#describeObject(schema, docs);
    if (schema instanceof z.ZodDiscriminatedUnion) return this.#describeUnion(schema, docs);
    if (schema instanceof z.ZodEnum) return `One of ${schema.options.map(literal).join(", ")}.`;
    return sentence(this.#wordsWithRules(schema));
  }

  #describeObject(schema: z.ZodObject, docs: Docs, without?: string): string {
    const rows = this.#rowsOf(schema, docs, "").filter(({ member }) => member !== without);
    const rules = rulesOf(schema).map((rule) => sentence(`Rule: ${rule}`));
    if (schema.def.catchall instanceof z.ZodUnknown) rules.push("Other members may be there.");
    const table = rows.length === 0 ? "Nothing." : renderTable(rows);
    return [table, ...(rules.length === 0 ? [] : [rules.join(" ")])].join("\n\n");
  }

  #describeUnion(schema: z.ZodDiscriminatedUnion, docs: Docs): string {
    return schema.options
      .map((option, index) => {
        const name = this.#names.nameOf(option);
        const when = conditionOf(schema, option);
        if (name !== undefined) return `With ${when}: ${link(name)}.`;
        if (!(option instanceof z.ZodObject)) return `With ${when}: ${this.#wordsOf(option)}.`;
        const own = docs.parts[index] ?? NO_DOCS;
        const body = this.#describeObject(option, own, schema.def.discriminator);
        return body === "Nothing." ? `With ${when}: nothing more.` : `With ${when}:\n\n${body}`;
      })
      .join("\n\n");
  }

  #rowsOf(schema: z.ZodObject, docs: Docs, prefix: string, when = ""): Row[] {
    const shape: Readonly<Record<string, Schema>> = schema.shape;
    return Object.entries(shape).flatMap(([name, value]) =>
      name === "_meta"
        ? []
        : this.#rowsOfMember(prefix + name, value, docs.members.get(name), when),
    );
  }

  #rowsOfMember(path: string, value: Schema, docs: Docs = NO_DOCS, when = ""): Row[] {
    const { schema, isOptional, isNullable, otherwise } = this.#unwrap(value);
    const name = this.#names.nameOf(schema);
    const isTelling = name !== undefined && !isSelfEvident(schema);
    const text = docs.text ?? (isTelling ? this.#names.docsOf(name).text : undefined);
    const standard =
      otherwise === undefined || otherwise === null
        ? []
        : [`Default ${code(JSON.stringify(otherwise))}.`];
    const rules = schema instanceof z.ZodObject && name === undefined ? rulesOf(schema) : [];
    const said = [text ?? "", ...rules].filter((part) => part !== "").map(sentence);
    const row: Row = {
      member: isOptional ? `${path}?` : path,
      type: this.#wordsOf(schema) + (isNullable ? " or `null`" : ""),
      meaning: [when, ...said, ...standard].filter((part) => part !== "").join(" "),
    };
    return [row, ...this.#rowsWithin(path, schema, docs)];
  }

  /** The rows of what a member without a name of its own is made of. */
  #rowsWithin(path: string, wrapped: Schema, docs: Docs): Row[] {
    const { schema } = this.#unwrap(wrapped);
    if (this.#names.nameOf(schema) !== undefined) return [];
    if (schema instanceof z.ZodArray) return this.#rowsWithin(`${path}[]`, schema.element, docs);
    if (schema instanceof z.ZodRecord) return this.#rowsWithin(`${path}.*`, schema.valueType, docs);
    if (schema instanceof z.ZodObject) return this.#rowsOf(schema, docs, `${path}.`);
    if (!(schema instanceof z.ZodDiscriminatedUnion)) return [];
    return schema.options.flatMap((option, index) => {
      if (!(option instanceof z.ZodObject) || this.#names.nameOf(option) !== undefined) return [];
      const when = sentence(`with ${conditionOf(schema, option)}`);
      return this.#rowsOf(option, docs.parts[index] ?? NO_DOCS, `${path}.`, when);
    });
  }

  #wordsOf(wrapped: Schema): string {
    const { schema, isNullable } = this.#unwrap(wrapped);
    const name = this.#names.nameOf(schema);
    const isSpelled = name === undefined || isSelfEvident(schema);
    const words = isSpelled ? this.#wordsWithRules(schema) : link(name);
    return isNullable ? `${words} or \`null\`` : words;
  }

  #wordsWithRules(schema: Schema): string {
    const rules = schema instanceof z.ZodObject ? [] : rulesOf(schema);
    const bounds = rules.length === 0 ? "" : ` (${rules.join("; ")})`;
    if (schema instanceof z.ZodArray) return `list${bounds} of ${this.#wordsOf(schema.element)}`;
    return this.#typeOf(schema) + bounds;
  }

  #typeOf(schema: Schema): string {
    if (schema instanceof z.ZodLiteral) return [...schema.values].map(literal).join(" or ");
    if (schema instanceof z.ZodEnum) return schema.options.map(literal).join(" or ");
    if (schema instanceof z.ZodRecord) {
      const isAny = schema.valueType instanceof z.ZodUnknown;
      return isAny ? "object" : `object of ${this.#wordsOf(schema.valueType)}`;
    }
    if (schema instanceof z.ZodDiscriminatedUnion) return "object";
    if (schema instanceof z.ZodUnion) {
      return [...new Set(schema.options.map((option) => this.#wordsOf(option)))].join(" or ");
    }
    if (schema instanceof z.ZodUnknown) return "any JSON";
    if (schema instanceof z.ZodNumberFormat) return "integer";
    return schema._zod.def.type;
  }

  #unwrap(schema: Schema) {
    return unwrap(schema, (inner) => this.#names.nameOf(inner) !== undefined);
  }
}

/** A name says no more of a count or of any object than the words do. */
function isSelfEvident(schema: Schema): boolean {
  return schema instanceof z.ZodNumber || schema instanceof z.ZodRecord;
}

function conditionOf({ def: { discriminator } }: z.ZodDiscriminatedUnion, option: Schema): string {
  const value = option instanceof z.ZodObject ? option.shape[discriminator] : undefined;
  const values = value instanceof z.ZodLiteral ? [...value.values].map(String) : [];
  return code(`${discriminator}: ${values.map((one) => JSON.stringify(one)).join(" | ")}`);
}

function literal(value: unknown): string {
  return code(typeof value === "bigint" ? String(value) : JSON.stringify(value));
}

function link(name: string): string {
  return `[${name}](@${name})`;
}

function renderTable(rows: readonly Row[]): string {
  const lines = rows.map(({ member, type, meaning }) => [code(member), type, meaning]);
  return table(["Member", "Type", "Meaning"], lines);
}
