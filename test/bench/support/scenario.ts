import { join } from "node:path";
import type { OfferedTool, RequestedTurn } from "./read-turn.ts";

/** What the scripted model does in a session; a prompt names it. */
export type Scenario = "hello" | "reads" | "shells" | "sleeps" | "flood" | "deltas";

export interface PlannedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export interface PlannedTurn {
  /** False for what a program asks beside the conversation, such as a title. */
  readonly main: boolean;
  readonly calls: readonly PlannedCall[];
  /** The answer, one string a delta, when there are no calls. */
  readonly deltas: readonly string[];
}

/** What the model process tells about one request; times are microseconds of the machine's monotonic clock. */
export interface ServedRequest {
  readonly arrivedAtUs: number;
  readonly endedAtUs: number;
  readonly byteLength: number;
  readonly main: boolean;
  readonly callCount: number;
  /** What a person said last. */
  readonly said: string;
  /** Characters of the last tool result in the request. */
  readonly resultLength: number;
}

/** Prints 100,000,000 characters in lines of 80. */
export const FLOOD_COMMAND = "head -c 100000000 /dev/zero | tr '\\0' 'x' | fold -w 80";
export const FLOOD_BYTES = 100_000_000;
export const FILE_COUNT = 200;

export function promptFor(scenario: Scenario, count = 1): string {
  return `Please perform bench-scenario:${scenario}:${count} now.`;
}

export function fileName(index: number): string {
  return `note-${String(index % FILE_COUNT).padStart(3, "0")}.txt`;
}

/** How far the scenario is follows from the calls in the history alone, so the model keeps no state. */
export function planTurn({ tools, steps }: RequestedTurn, workspace: string): PlannedTurn {
  const start = steps.findLastIndex(({ kind, text }) => kind === "user" && MARK.test(text));
  const [, scenario, digits] = MARK.exec(steps[start]?.text ?? "") ?? [];
  if (scenario === undefined || tools.length === 0) return answer(["ok"], false);
  const count = Number(digits);
  const done = steps.slice(start).reduce((sum, { callCount }) => sum + callCount, 0);
  if (scenario === "reads" && done < count) {
    return callsOf([readCall(tools, join(workspace, fileName(done)))]);
  }
  if (scenario === "shells" && done < count)
    return callsOf([shellCall(tools, `echo step ${done}`)]);
  if (scenario === "sleeps" && done === 0) {
    return callsOf(Array.from({ length: count }, (_, n) => shellCall(tools, `sleep 1; : ${n}`)));
  }
  if (scenario === "flood" && done === 0) return callsOf([shellCall(tools, FLOOD_COMMAND)]);
  if (scenario === "deltas") return answer(Array.from({ length: count }, (_, n) => `word${n} `));
  return answer(["done"]);
}

const MARK = /bench-scenario:([a-z]+):(\d+)/;
const READ_TOOL = /^read$/i;
const SHELL_TOOL = /^(?:bash|exec_command)$/i;
const PATH_NAMES = ["filePath", "file_path", "path"];
const COMMAND_NAMES = ["command", "cmd"];

function answer(deltas: readonly string[], main = true): PlannedTurn {
  return { main, calls: [], deltas };
}

function callsOf(calls: readonly PlannedCall[]): PlannedTurn {
  return { main: true, calls, deltas: [] };
}

/** A program without a tool that reads files does so through its shell. */
function readCall(tools: readonly OfferedTool[], path: string): PlannedCall {
  const tool = tools.find(({ name }) => READ_TOOL.test(name));
  return tool === undefined ? shellCall(tools, `cat ${path}`) : callTo(tool, PATH_NAMES, path);
}

function shellCall(tools: readonly OfferedTool[], command: string): PlannedCall {
  const tool = tools.find(({ name }) => SHELL_TOOL.test(name));
  if (tool === undefined) throw new Error(`no shell among ${tools.map(({ name }) => name).join()}`);
  return callTo(tool, COMMAND_NAMES, command);
}

function callTo(tool: OfferedTool, names: readonly string[], value: string): PlannedCall {
  const key = names.find((name) => name in tool.properties) ?? names[0] ?? "input";
  const others = tool.required.filter((name) => name !== key);
  return {
    name: tool.name,
    arguments: { ...Object.fromEntries(others.map((name) => [name, "bench"])), [key]: value },
  };
}
