import { PLUGIN_PROTOCOL_VERSION } from "@cookie-agent/sdk/protocol";

export interface EnvironmentSource {
  /** The kernel's own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly secretEnvNames: ReadonlySet<string>;
}

/** The whole environment of a plugin process: what was promised and nothing else (E-046). */
export function childEnvironment(
  source: EnvironmentSource,
  inherit: "*" | readonly string[],
  own: Readonly<Record<string, string>>,
): Record<string, string> {
  const names = inherit === "*" ? Object.keys(source.env) : inherit;
  const environment: Record<string, string> = {};
  if (process.platform === "win32") copy(source.env, "SystemRoot", environment);
  for (const name of names) {
    if (name === "COOKIE_DAEMON_TOKEN" || source.secretEnvNames.has(name)) continue;
    copy(source.env, name, environment);
  }
  return { ...environment, ...own, COOKIE_PLUGIN_PROTOCOL: PLUGIN_PROTOCOL_VERSION };
}

function copy(
  from: Readonly<Record<string, string | undefined>>,
  name: string,
  to: Record<string, string>,
): void {
  const value = from[name];
  if (value !== undefined) to[name] = value;
}
