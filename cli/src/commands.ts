import Doctor from "./commands/doctor.ts";
import Run from "./commands/run.ts";
import ListSessions from "./commands/session/list.ts";
import ShowSession from "./commands/session/show.ts";
import ListTools from "./commands/tool/list.ts";
import Trust from "./commands/trust.ts";

/** Every command by its id; what a command needs it loads when it runs. */
export const COMMANDS = {
  doctor: Doctor,
  run: Run,
  "session:list": ListSessions,
  "session:show": ShowSession,
  "tool:list": ListTools,
  trust: Trust,
};
