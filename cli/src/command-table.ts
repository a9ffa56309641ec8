import type { Command } from "./command.ts";

/** Every command by its id; only the one that runs is loaded. */
export const COMMAND_TABLE: Readonly<Record<string, () => Promise<Command>>> = {
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  run: async () => (await import("./commands/run.ts")).run,
  "session:list": async () => (await import("./commands/session/list.ts")).listSessions,
  "session:show": async () => (await import("./commands/session/show.ts")).showSession,
  "tool:list": async () => (await import("./commands/tool/list.ts")).listTools,
  trust: async () => (await import("./commands/trust.ts")).trust,
};

export async function loadAllCommands(): Promise<[id: string, command: Command][]> {
  return Promise.all(
    Object.entries(COMMAND_TABLE).map(
      async ([id, load]): Promise<[string, Command]> => [id, await load()],
    ),
  );
}
