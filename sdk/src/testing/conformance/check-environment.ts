import { Bench, type Environment } from "./bench.ts";
import type { Check } from "./check.ts";
import { Finding, fail } from "./verdict.ts";

export const checkEnvironment: Check = {
  id: "C-07",
  title: "environment: starts in the cleared one, and in the one that its manifest asks for",
  ids: ["E-046", "E-181"],
  async run(bench) {
    const cleared = await problemIn(bench, "cleared");
    if (cleared !== undefined) {
      fail(
        `starts only with the environment of this shell, not in the cleared one that it gets (${cleared})`,
        "need no variable: use absolute paths, or say in the README which `env` its entry needs",
      );
    }
    const granted = await problemIn(bench, "granted");
    if (granted !== undefined) {
      fail(
        `does not start with the variables that its manifest asks for and no others (${granted})`,
        "name every variable that it needs in env.inherit, or do without",
      );
    }
  },
};

async function problemIn(bench: Bench, environment: Environment): Promise<string | undefined> {
  const other = new Bench({ ...bench.options, environment });
  try {
    await other.start(await other.folder());
    return undefined;
  } catch (error) {
    if (error instanceof Finding) return error.message;
    throw error;
  } finally {
    await other.close();
  }
}
