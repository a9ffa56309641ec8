export { ConfigError } from "./config/config-error.ts";
export { type Kernel, type OpenKernelOptions, openKernel } from "./kernel.ts";
export type { Logger, LogLevel } from "./support/logger.ts";
