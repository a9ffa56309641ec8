import type { ArgInput, FlagInput, InferredArgs, InferredFlags } from "@oclif/core/interfaces";
import { parse } from "@oclif/core/parser";
import { describeUsageError } from "./describe-usage-error.ts";
import { ExitCode, usageError } from "./exit-code.ts";
import { switchFlag } from "./switch-flag.ts";

/** A command as its file states it. */
export interface CommandDeclaration<Flags extends FlagInput, Args extends ArgInput> {
  readonly summary: string;
  readonly description?: string;
  /** With `<%= config.bin %>` for the name of the program. */
  readonly examples?: readonly string[];
  readonly args: Args;
  readonly flags: Flags;
  /** Resolves with the exit code; success when it says nothing. */
  run(input: CommandInput<Flags, Args>): Promise<ExitCode | undefined>;
}

export interface CommandInput<Flags extends FlagInput, Args extends ArgInput> {
  readonly args: InferredArgs<Args>;
  readonly flags: InferredFlags<Flags> & { readonly json: boolean };
}

/** A command as the command line meets it. */
export interface Command {
  readonly summary: string;
  readonly description: string | undefined;
  readonly examples: readonly string[];
  readonly args: ArgInput;
  readonly flags: FlagInput;
  /** Parses its own arguments and runs. */
  execute(argv: readonly string[]): Promise<ExitCode>;
}

/** Gives a command what all of them have: strict parsing, `--json`, and one kind of usage error (C 7.1). */
export function defineCommand<Flags extends FlagInput, Args extends ArgInput>(
  declaration: CommandDeclaration<Flags, Args>,
): Command {
  const { summary, description, examples = [], args } = declaration;
  const flags = {
    ...declaration.flags,
    json: switchFlag("print one JSON document"),
  };
  return {
    summary,
    description,
    examples,
    args,
    flags,
    async execute(argv) {
      const parsed = await parse([...argv], { args, flags }).catch((error: unknown) => {
        throw describeUsageError(error, flags);
      });
      rejectBlankValues(parsed.flags);
      const input = { args: parsed.args, flags: parsed.flags } as CommandInput<Flags, Args>;
      return (await declaration.run(input)) ?? ExitCode.success;
    },
  };
}

/** `--model ""` is a mistake in a script, never a wish. A prompt is judged where it is read. */
function rejectBlankValues(flags: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(flags)) {
    if (value === "" && name !== "prompt") throw usageError(`--${name} needs a value`);
  }
}
