import { SnakeName } from "./scalars.ts";
import type { ToolDeclaration } from "./tool.ts";

export interface DeclarationProblem {
  /** Where, below the tool. */
  readonly member: string;
  readonly problem: string;
}

/**
 * What is wrong with a declaration though each of its members has the right shape (E-034, E-070): the first that is
 * found. A name that is not snake_case is right for the tools of an MCP bridge only.
 */
export function findDeclarationProblem(
  tool: ToolDeclaration,
  { anyName = false }: { readonly anyName?: boolean } = {},
): DeclarationProblem | undefined {
  if (!anyName && !SnakeName.safeParse(tool.name).success) {
    return { member: "name", problem: "expected a snake_case name" };
  }
  const { type, properties } = tool.parameters;
  if (type !== "object") {
    return { member: "parameters.type", problem: 'expected "object" at the top level' };
  }
  const known = typeof properties === "object" && properties !== null ? properties : {};
  for (const [member, name] of namedArguments(tool)) {
    if (typeof name === "string" && !Object.hasOwn(known, name)) {
      return { member, problem: `the parameters have no property ${name}` };
    }
  }
  return undefined;
}

function namedArguments(
  tool: ToolDeclaration,
): readonly (readonly [member: string, name: string | null | undefined])[] {
  const { prepare } = tool;
  const isStatic = prepare?.mode === "static";
  return [
    ["primary_resource_param", tool.primary_resource_param],
    ["display_argument", tool.display_argument],
    ["stdin_argument", tool.stdin_argument],
    ...(isStatic ? namesOf("resources", prepare.resources) : []),
    ...(isStatic ? namesOf("serialize", prepare.serialize ?? []) : []),
  ];
}

function namesOf(list: string, items: readonly { readonly arg?: string | undefined }[]) {
  return items.map(({ arg }, index) => [`prepare.${list}.${index}.arg`, arg] as const);
}
