import { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import { Finding, fail } from "./verdict.ts";

export const checkEnvironment: Check = {
  id: "C-07",
  title: "environment: starts in the cleared one",
  ids: ["E-046", "E-181"],
  async run(bench) {
    if (!bench.options.inheritEnvironment) {
      await bench.start(await bench.folder());
      return;
    }
    // The kit found that the plugin starts only so; here is said why.
    const cleared = new Bench({ ...bench.options, inheritEnvironment: false });
    try {
      await cleared.start(await cleared.folder());
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      fail(
        `starts only with the environment of this shell, not in the cleared one that it gets (${error.message})`,
        "need no variable: use absolute paths, or say in the README which `env` its entry needs",
      );
    } finally {
      await cleared.close();
    }
  },
};
