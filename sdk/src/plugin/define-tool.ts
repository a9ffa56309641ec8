import type * as z from "zod";
import type { JsonObject } from "../protocol/scalars.ts";
import type {
  AvailabilityPredicate,
  Concurrency,
  OutputDeclaration,
  PermissionAction,
  PrepareDeclaration,
} from "../protocol/tool.ts";
import type { PreparedCall, PrepareRequest } from "./prepared-call.ts";
import type { ToolAnswer, ToolInvocation } from "./tool-invocation.ts";

/** A zod object schema, or a JSON Schema 2020-12 object with top level `type: "object"`. */
export type ToolParameters = z.ZodObject | JsonObject;

/** What `call` gets as `args`: the schema's output, or plain JSON for a hand-written JSON Schema. */
export type ArgumentsOf<Schema extends ToolParameters> = Schema extends z.ZodObject
  ? z.output<Schema>
  : JsonObject;

/** The kernel derives the permission labels from the arguments; no request is needed (E-080). */
export type StaticPrepare = Extract<PrepareDeclaration, { mode: "static" }>;

/** The plugin looks at the world before the call and names what the call will touch (E-082). */
export interface DynamicPrepare<Args, State> {
  readonly mode: "dynamic";
  /** Every action that a prepared resource may have. */
  readonly actions: readonly PermissionAction[];
  /**
   * Must have no outside effect and answer within 5 s. It may run more than once for one call, and its result may never
   * be used (E-084).
   */
  run(request: PrepareRequest<Args>): PreparedCall<State> | Promise<PreparedCall<State>>;
}

/** One tool; its name is the key under which the plugin lists it (E 6.1). */
export interface ToolDefinition<Schema extends ToolParameters = ToolParameters, State = unknown> {
  /** Sent to the model unchanged; 1 to 16384 bytes. */
  readonly description: string;
  /** The kernel checks each call's arguments against it; a zod schema then adds its defaults and refinements. */
  readonly parameters: Schema;
  /** snake_case; what permission rules of action `plugin` match. */
  readonly permissionName: string;
  /** Profiles in which the tool exists; default: all, for a shipped tool `cookie` (E-201). */
  readonly profile?: readonly string[];
  /** Argument shown next to the title; default: the primary resource. */
  readonly displayArgument?: string | null;
  /** Short form of a static prepare with one resource of action `plugin`. */
  readonly primaryResourceParam?: string | null;
  /** What the call will touch; default: `primaryResourceParam`, else a check of the tool's name alone. */
  readonly prepare?: StaticPrepare | DynamicPrepare<ArgumentsOf<Schema>, State>;
  /** Default `exclusive`: calls of one turn run one after another. */
  readonly concurrency?: Concurrency;
  /** Default one unnamed stream; `named` lists 1 to 8 streams in rendering order. */
  readonly output?: OutputDeclaration;
  /** `opt_out` sends the whole text to the model; trusted plugins only. */
  readonly resultTruncation?: "bounded" | "opt_out";
  /** Default: the entry's `tool_timeout_ms`. Null: no kernel timeout; trusted plugins only. */
  readonly timeoutMs?: number | null;
  /** Boolean argument that opens standard input for the call when true. */
  readonly stdinArgument?: string;
  /** The kernel may repeat a call whose process died before any output (E-061). */
  readonly retrySafe?: boolean;
  /** What must hold when a run starts for it to be offered there; a predicate the kernel has nothing for is false (E-037). */
  readonly availableWhen?: readonly AvailabilityPredicate[];
  /** Checks right before a waited-for approval that what was prepared still holds; throws `operation_changed` (E-088). */
  revalidate?(state: State | undefined): void | Promise<void>;
  /**
   * Runs one call. Its first act is to check that what was prepared still holds (E-091). A thrown `ToolError` keeps its
   * code; any other error becomes `execution_failed` with its message, which the model reads.
   */
  call(invocation: ToolInvocation<ArgumentsOf<Schema>, State>): ToolAnswer | Promise<ToolAnswer>;
}

/** Types `args` from the schema and `state` from what `prepare.run` returns; adds nothing at run time. */
export function defineTool<Schema extends ToolParameters, State = undefined>(
  tool: ToolDefinition<Schema, State>,
): ToolDefinition {
  return tool as ToolDefinition;
}
