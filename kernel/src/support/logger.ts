export type LogLevel = "debug" | "info" | "warn" | "error";

/** Where operational news goes; never holds secrets, prompts or tool output. */
export interface Logger {
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export const silentLogger: Logger = { log: () => undefined };
