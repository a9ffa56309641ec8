/** The three request forms that the measured programs speak. */
export type Wire = "chat" | "responses" | "anthropic";

export interface OfferedTool {
  readonly name: string;
  /** Declared parameters by name. */
  readonly properties: Readonly<Record<string, { readonly type?: unknown }>>;
  readonly required: readonly string[];
}

/** One thing that happened in a conversation, whichever form it was sent in. */
export interface Step {
  readonly kind: "user" | "calls" | "result";
  readonly text: string;
  /** Tool calls that this step made. */
  readonly callCount: number;
}

export interface RequestedTurn {
  readonly tools: readonly OfferedTool[];
  readonly steps: readonly Step[];
}

export function wireOf(url: string): Wire | undefined {
  const path = url.split("?")[0] ?? "";
  if (path.endsWith("/chat/completions")) return "chat";
  if (path.endsWith("/responses")) return "responses";
  return path.endsWith("/messages") ? "anthropic" : undefined;
}

interface Schema {
  readonly properties?: OfferedTool["properties"];
  readonly required?: readonly string[];
}

interface WireTool {
  readonly name?: string;
  readonly function?: { readonly name: string; readonly parameters?: Schema };
  readonly parameters?: Schema;
  readonly input_schema?: Schema;
}

interface WireItem {
  readonly type?: string;
  readonly role?: string;
  readonly content?: unknown;
  readonly output?: unknown;
  readonly tool_calls?: readonly unknown[];
}

interface WireRequest {
  readonly tools?: readonly WireTool[];
  readonly messages?: readonly WireItem[];
  readonly input?: readonly WireItem[];
}

export function readTurn(wire: Wire, body: string): RequestedTurn {
  const request = JSON.parse(body) as WireRequest;
  const items = (wire === "responses" ? request.input : request.messages) ?? [];
  return {
    tools: (request.tools ?? []).flatMap(readTool),
    steps: items.flatMap((item) => READERS[wire](item)),
  };
}

function readTool(tool: WireTool): OfferedTool[] {
  const name = tool.function?.name ?? tool.name;
  if (name === undefined) return [];
  const schema = tool.function?.parameters ?? tool.parameters ?? tool.input_schema ?? {};
  return [{ name, properties: schema.properties ?? {}, required: schema.required ?? [] }];
}

const READERS: Readonly<Record<Wire, (item: WireItem) => Step[]>> = {
  chat: (item) =>
    item.role === "tool" ? [result(item.content)] : message(item, item.tool_calls?.length ?? 0),
  responses: (item) => {
    if (item.type?.endsWith("_call_output")) return [result(item.output)];
    return item.type?.endsWith("_call") ? [calls(1)] : message(item, 0);
  },
  anthropic: (item) => {
    const parts = Array.isArray(item.content) ? (item.content as WireItem[]) : [];
    const results = parts.filter(({ type }) => type === "tool_result");
    if (results.length > 0) return results.map(({ content }) => result(content));
    return message(item, parts.filter(({ type }) => type === "tool_use").length);
  },
};

function message(item: WireItem, callCount: number): Step[] {
  if (item.role === "user") return [{ kind: "user", text: textOf(item.content), callCount: 0 }];
  return callCount > 0 ? [calls(callCount)] : [];
}

function calls(callCount: number): Step {
  return { kind: "calls", text: "", callCount };
}

function result(content: unknown): Step {
  return { kind: "result", text: textOf(content), callCount: 0 };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return (content as { text?: unknown }[])
    .map(({ text }) => (typeof text === "string" ? text : ""))
    .join("\n");
}
