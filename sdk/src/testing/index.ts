export type { ConformanceLimits } from "./conformance/bench.ts";
export {
  type ConformanceOptions,
  type ConformanceReport,
  type ConformanceResult,
  type ConformanceTarget,
  runConformance,
} from "./conformance/run-conformance.ts";
export { ConformanceSamples } from "./conformance/samples.ts";
export type { ProgressNote } from "./driven-call.ts";
export type { FakeService, FakeServices } from "./fake-services.ts";
export {
  type HarnessCall,
  type HarnessOptions,
  type HarnessResult,
  type PluginHarness,
  testPlugin,
} from "./test-plugin.ts";
