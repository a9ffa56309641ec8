export { ConfigError } from "./config/config-error.ts";
export type { TriedPlugin } from "./config/try-plugin.ts";
export {
  inspectPlugin,
  type PluginInspection,
  type PluginProblem,
} from "./inspect-plugin.ts";
export {
  grantTrust,
  inspectContents,
  inspectSetup,
  listTrust,
  probeFileLock,
  reviewWorkspace,
  revokeTrust,
  type SetupReport,
  type WorkspaceContents,
  type WorkspaceReview,
} from "./inspect-setup.ts";
export { type Kernel, type OpenKernelOptions, openKernel } from "./kernel.ts";
export { type PluginTrustPlan, planPluginTrust } from "./plan-plugin-trust.ts";
export type { Logger, LogLevel } from "./support/logger.ts";
