export { ConfigError } from "./config/config-error.ts";
export {
  grantTrust,
  inspectContents,
  inspectSetup,
  listTrust,
  probeFileLock,
  revokeTrust,
  type SetupReport,
  type WorkspaceContents,
} from "./inspect-setup.ts";
export { type Kernel, type OpenKernelOptions, openKernel } from "./kernel.ts";
export type { Logger, LogLevel } from "./support/logger.ts";
