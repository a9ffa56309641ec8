import type { Command } from "./command.ts";
import { daemon } from "./commands/daemon.ts";
import { doctor } from "./commands/doctor.ts";
import { explainPermissions } from "./commands/permissions/explain.ts";
import { callPlugin } from "./commands/plugin/call.ts";
import { checkPlugin } from "./commands/plugin/check.ts";
import { initPlugin } from "./commands/plugin/init.ts";
import { listPlugins } from "./commands/plugin/list.ts";
import { pluginLogs } from "./commands/plugin/logs.ts";
import { reloadPlugin } from "./commands/plugin/reload.ts";
import { pluginStatus } from "./commands/plugin/status.ts";
import { testPlugin } from "./commands/plugin/test.ts";
import { trustPlugin } from "./commands/plugin/trust.ts";
import { run } from "./commands/run.ts";
import { compactSession } from "./commands/session/compact.ts";
import { exportSession } from "./commands/session/export.ts";
import { forkSession } from "./commands/session/fork.ts";
import { listSessions } from "./commands/session/list.ts";
import { renameSession } from "./commands/session/rename.ts";
import { revertSession } from "./commands/session/revert.ts";
import { removeSession } from "./commands/session/rm.ts";
import { showSession } from "./commands/session/show.ts";
import { sessionTree } from "./commands/session/tree.ts";
import { listTools } from "./commands/tool/list.ts";
import { trust } from "./commands/trust.ts";
import { usage } from "./commands/usage.ts";

/** Every command by its id, words separated by `:`. The kernel is loaded by the commands that open one. */
export const COMMAND_TABLE: Readonly<Record<string, Command>> = {
  daemon,
  doctor,
  "permissions:explain": explainPermissions,
  "plugin:call": callPlugin,
  "plugin:check": checkPlugin,
  "plugin:init": initPlugin,
  "plugin:list": listPlugins,
  "plugin:logs": pluginLogs,
  "plugin:reload": reloadPlugin,
  "plugin:status": pluginStatus,
  "plugin:test": testPlugin,
  "plugin:trust": trustPlugin,
  run,
  "session:export": exportSession,
  "session:fork": forkSession,
  "session:compact": compactSession,
  "session:list": listSessions,
  "session:rename": renameSession,
  "session:revert": revertSession,
  "session:rm": removeSession,
  "session:show": showSession,
  "session:tree": sessionTree,
  "tool:list": listTools,
  trust,
  usage,
};
