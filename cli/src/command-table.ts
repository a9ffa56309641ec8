import type { Command } from "./command.ts";
import { doctor } from "./commands/doctor.ts";
import { run } from "./commands/run.ts";
import { listSessions } from "./commands/session/list.ts";
import { showSession } from "./commands/session/show.ts";
import { listTools } from "./commands/tool/list.ts";
import { trust } from "./commands/trust.ts";

/** Every command by its id, words separated by `:`. The kernel is loaded by the commands that open one. */
export const COMMAND_TABLE: Readonly<Record<string, Command>> = {
  doctor,
  run,
  "session:list": listSessions,
  "session:show": showSession,
  "tool:list": listTools,
  trust,
};
