import { inspect } from "node:util";
import { expect, test } from "vitest";
import { Secret } from "../../../../kernel/src/config/secret.ts";
import { customProvider, loadToml, tomlFailure } from "./scenario.ts";

test("[C-036] a secret shows itself in no text, JSON or inspection", () => {
  const secret = Secret.of("hunter2");
  const shown = [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ deep: [{ secret }] }, { depth: 9, showHidden: true }),
    JSON.stringify(Object.entries(secret)),
    inspect(structuredClone({ ...secret })),
  ].join("\n");
  expect(shown).not.toContain("hunter2");
  expect(secret.reveal()).toBe("hunter2");
});

test("[C-036] a loaded configuration shows no secret", async () => {
  const loaded = await loadToml(
    `${customProvider({ auth: '[providers."custom.local".auth]\nmethod = "bearer-api-key-v1"\nvalues = { api_key = "${env:KEY}" }' })}
[providers.acme]
source = "models_dev"
api_key = "hunter2"
[mcp.servers.a]
url = "https://example.com"
oauth = { client_id = "id", client_secret = "hunter2" }`,
    { env: { KEY: "hunter2" } },
  );
  const shown = inspect(loaded, { depth: 20, showHidden: true }) + JSON.stringify(loaded.config);
  expect(shown).not.toContain("hunter2");
});

test.for([
  '[providers.acme]\nsource = "models_dev"\napi_key = ""',
  customProvider({
    auth: '[providers."custom.local".auth]\nmethod = "bearer-api-key-v1"\nvalues = { api_key = "" }',
  }),
  '[mcp.servers.a]\nurl = "https://a.example"\noauth = { client_id = "id", client_secret = "" }',
])("[C-037] an empty secret is refused", async (toml) => {
  expect((await tomlFailure(toml)).problem).toContain("must not be empty");
});

test("[C-037] a secret that is empty in the environment is refused", async () => {
  const toml = '[providers.acme]\nsource = "models_dev"\napi_key = "${env:KEY}"';
  expect(await tomlFailure(toml, { env: { KEY: "" } })).toMatchObject({ code: "invalid_value" });
});
