import type { SetupReport } from "@cookie-agent/kernel";
import { PluginsStatus, RuntimeSnapshotGet } from "@cookie-agent/sdk/protocol";
import { type LocalKernel, openLocalKernel } from "../open-kernel.ts";
import { describeError } from "../report-error.ts";
import { type Check, failed, ok, warning } from "./check.ts";

/** What the configuration files say, before anything is opened. */
export function checkConfiguration(report: SetupReport): Check[] {
  const checks = report.layers.map(({ layer, path, present }) =>
    ok(`${layer} configuration`, present ? path : `${path} (none)`),
  );
  if (report.problem !== null) {
    checks.push(failed("configuration", report.problem, "correct the file as the message says"));
  }
  for (const provider of report.catalogProviders) {
    checks.push(
      warning(
        `provider ${provider}`,
        "its models would come from a catalog, which this version does not have",
        'describe it with source = "custom"; README.md shows one',
      ),
    );
  }
  return [...checks, checkTrust(report)];
}

/** What a kernel opened here can run: models, agents, plugins. */
export async function checkRuntime(): Promise<Check[]> {
  let local: LocalKernel;
  try {
    local = await openLocalKernel();
  } catch (error) {
    return [failed("kernel", describeError(error).message, "correct what the message names")];
  }
  try {
    const { snapshot } = await local.client.request(RuntimeSnapshotGet, {});
    const { plugins } = await local.client.request(PluginsStatus, {});
    const usable = snapshot.models.filter(({ available, offline }) => available && !offline);
    return [
      usable.length > 0
        ? ok("models", usable.map(({ key }) => key).join(", "))
        : warning(
            "models",
            "none but the offline model",
            "add a provider to ~/.cookie-agent/config.toml; README.md shows one",
          ),
      ok("default agent", snapshot.default_agent ?? "none (no model)"),
      ok("tools", snapshot.tools.map(({ name }) => name).join(", ")),
      ...plugins.map((plugin) =>
        plugin.state === "failed"
          ? failed(
              `plugin ${plugin.plugin}`,
              plugin.reason ?? "failed",
              "correct the plugin or its entry",
            )
          : plugin.diagnostics.length > 0
            ? warning(
                `plugin ${plugin.plugin}`,
                plugin.diagnostics.join("; "),
                "see the plugin's entry and manifest",
              )
            : ok(`plugin ${plugin.plugin}`, `${plugin.tier}, ${plugin.tools.length} tools`),
      ),
    ];
  } finally {
    await local.close();
  }
}

function checkTrust(report: SetupReport): Check {
  const { state, directory } = report.workspace;
  switch (state) {
    case "absent":
      return ok("workspace trust", "the directory brings no configuration of its own");
    case "trusted":
      return ok("workspace trust", `${directory} is trusted`);
    default:
      return warning(
        "workspace trust",
        state === "changed"
          ? `${directory} changed since it was trusted`
          : `${directory} is not trusted`,
        "read it, then run `cookie trust`",
      );
  }
}
