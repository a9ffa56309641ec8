import { Command as OclifCommand } from "@oclif/core";
import type { Command } from "./command.ts";
import { COMMAND_TABLE } from "./command-table.ts";

/** The commands as oclif knows commands: for its help and for the commands that extensions add. */
export const COMMANDS: Readonly<Record<string, OclifCommand.Class>> = Object.fromEntries(
  Object.entries(COMMAND_TABLE).map(([id, command]) => [id, asOclifCommand(command)]),
);

function asOclifCommand(command: Command): OclifCommand.Class {
  return class extends OclifCommand {
    static override readonly summary = command.summary;
    static override readonly description = command.description;
    static override readonly examples = [...command.examples];
    static override readonly args = command.args;
    static override readonly flags = command.flags;

    override run(): Promise<unknown> {
      return command.execute(this.argv);
    }
  };
}
