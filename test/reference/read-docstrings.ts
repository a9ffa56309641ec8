import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ESTree, parseSync } from "vite";

/** What the source says about one declaration and about each member of the shape it is made of. */
export interface Docs {
  readonly text: string | undefined;
  readonly members: ReadonlyMap<string, Docs>;
  /** The schemas of a method in the order of its arguments, or the options of a union. */
  readonly parts: readonly Docs[];
}

export const NO_DOCS: Docs = { text: undefined, members: new Map(), parts: [] };

/** The docstrings of a folder of modules, by the name under which something is exported. */
export function readDocstrings(directory: string): ReadonlyMap<string, Docs> {
  const exported = new Map<string, Declaration>();
  for (const name of readdirSync(directory).sort()) {
    if (!name.endsWith(".ts")) continue;
    const module = new Module(name, readFileSync(join(directory, name), "utf8"), exported);
    for (const own of module.exported) exported.set(own.name, own);
  }
  return new Map([...exported].map(([name, own]) => [name, own.module.docsOf(own)]));
}

interface Declaration {
  readonly name: string;
  readonly module: Module;
  readonly text: string | undefined;
  readonly value: ESTree.Expression;
}

class Module {
  readonly exported: readonly Declaration[];
  readonly #local = new Map<string, Declaration>();
  readonly #begun = new Set<Declaration>();
  readonly #others: ReadonlyMap<string, Declaration>;
  readonly #source: string;
  readonly #comments: ReturnType<typeof parseSync>["comments"];

  constructor(name: string, source: string, others: ReadonlyMap<string, Declaration>) {
    const { program, comments } = parseSync(name, source);
    this.#source = source;
    this.#comments = comments;
    this.#others = others;
    const exported: Declaration[] = [];
    for (const statement of program.body) {
      const isExported = statement.type === "ExportNamedDeclaration";
      const declared = isExported ? statement.declaration : statement;
      if (declared?.type !== "VariableDeclaration") continue;
      for (const { id, init } of declared.declarations) {
        if (id.type !== "Identifier" || init === null) continue;
        const text = this.#textBefore(statement.start);
        const declaration = { name: id.name, module: this, text, value: init };
        if (isExported) exported.push(declaration);
        else this.#local.set(id.name, declaration);
      }
    }
    this.exported = exported;
  }

  docsOf(declaration: Declaration): Docs {
    const { text, value } = declaration;
    // A schema that holds itself is described where it begins.
    if (this.#begun.has(declaration)) return { ...NO_DOCS, text };
    this.#begun.add(declaration);
    const docs = { ...this.#describe(value), text };
    this.#begun.delete(declaration);
    return docs;
  }

  #describe(node: ESTree.Node): Docs {
    switch (node.type) {
      case "Identifier": {
        const local = this.#local.get(node.name);
        if (local !== undefined) return this.docsOf(local);
        const named =
          this.exported.find(({ name }) => name === node.name) ?? this.#others.get(node.name);
        // Whoever uses a named schema links to it; its text is said there.
        return named === undefined ? NO_DOCS : { ...named.module.docsOf(named), text: undefined };
      }
      case "MemberExpression":
        return this.#describe(node.object);
      case "TSAsExpression":
      case "TSSatisfiesExpression":
        return this.#describe(node.expression);
      case "ParenthesizedExpression":
        return this.#describe(node.expression);
      case "ArrowFunctionExpression":
        // What builds a schema when it is first used says what the schema is.
        return this.#describe(node.body);
      case "ObjectExpression":
        return this.#describeObject(node);
      case "ArrayExpression":
        return merge(node.elements.map((element) => (element ? this.#describe(element) : NO_DOCS)));
      case "CallExpression":
        return this.#describeCall(node);
      default:
        return NO_DOCS;
    }
  }

  #describeObject(node: ESTree.ObjectExpression): Docs {
    const members = new Map<string, Docs>();
    for (const property of node.properties) {
      if (property.type === "SpreadElement") {
        for (const [name, docs] of this.#describe(property.argument).members) {
          members.set(name, docs);
        }
        continue;
      }
      const { key } = property;
      const name = key.type === "Identifier" ? key.name : key.type === "Literal" ? key.value : null;
      const docs = this.#describe(property.value);
      const text = this.#textBefore(property.start) ?? docs.text;
      members.set(String(name), { ...docs, text });
    }
    return { text: undefined, members, parts: [] };
  }

  #describeCall({ callee, arguments: given }: ESTree.CallExpression): Docs {
    const values = given.filter(({ type }) => type !== "Literal");
    if (callee.type === "Identifier") {
      const parts = values.map((value) => this.#describe(value));
      const [only] = parts;
      return parts.length === 1 && only !== undefined && given.length === 1 ? only : merge(parts);
    }
    if (callee.type !== "MemberExpression") return NO_DOCS;
    if (callee.object.type === "Identifier" && callee.object.name === "z") {
      const [only, ...others] = values.map((value) => this.#describe(value));
      return only === undefined ? NO_DOCS : others.length === 0 ? only : merge([only, ...others]);
    }
    const receiver = this.#describe(callee.object);
    const isExtended = callee.property.type === "Identifier" && callee.property.name === "extend";
    const added = isExtended ? values.map((value) => this.#describe(value)) : [];
    return added.length === 0
      ? receiver
      : { ...merge([receiver, ...added]), parts: receiver.parts };
  }

  /** The docstring that ends right before a position. */
  #textBefore(position: number): string | undefined {
    const comment = this.#comments.findLast(({ end }) => end <= position);
    if (comment?.type !== "Block" || !comment.value.startsWith("*")) return undefined;
    if (this.#source.slice(comment.end, position).trim() !== "") return undefined;
    return comment.value
      .slice(1)
      .split("\n")
      .map((line) => line.replace(/^\s*\*?\s?/, "").trimEnd())
      .join(" ")
      .trim();
  }
}

function merge(parts: readonly Docs[]): Docs {
  return {
    text: undefined,
    members: new Map(parts.flatMap(({ members }) => [...members])),
    parts,
  };
}
