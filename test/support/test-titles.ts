import { type ESTree, parseSync, Visitor } from "vite";

const TITLED = new Set(["test", "describe", "bench"]);

/** What `test`, `describe` and `bench` are given as a title; where it is `%s …`, what each row of the table puts there. */
export function titlesOf(name: string, source: string): string[] {
  const titles: string[] = [];
  const visitor = new Visitor({
    CallExpression({ callee, arguments: [given] }) {
      if (!TITLED.has(rootOf(callee))) return;
      const title = textOf(given);
      if (title === undefined) return;
      titles.push(title);
      if (callee.type === "CallExpression" && title.startsWith("%s")) {
        titles.push(...firstTexts(callee.arguments[0]));
      }
    },
  });
  visitor.visit(parseSync(name, source).program);
  return titles;
}

function textOf(node: ESTree.Node | null | undefined): string | undefined {
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type !== "TemplateLiteral") return undefined;
  return node.quasis.map(({ value }) => value.raw).join("");
}

/** The first text of each row of a table. */
function firstTexts(table: ESTree.Node | undefined): string[] {
  if (table?.type === "TSAsExpression") return firstTexts(table.expression);
  if (table?.type !== "ArrayExpression") return [];
  return table.elements.flatMap(
    (row) => textOf(row?.type === "ArrayExpression" ? row.elements[0] : row) ?? [],
  );
}

/** `test` of `test`, `test.skip`, `test.for([…])` and `test.skipIf(…).for([…])`. */
function rootOf(callee: ESTree.Expression | ESTree.Super): string {
  switch (callee.type) {
    case "Identifier":
      return callee.name;
    case "MemberExpression":
      return rootOf(callee.object);
    case "CallExpression":
      return rootOf(callee.callee);
    default:
      return "";
  }
}
