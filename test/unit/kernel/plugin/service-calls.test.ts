import { join } from "node:path";
import { expect, test } from "vitest";
import { loadFirstParty } from "../../../../kernel/src/plugin/load-manifest.ts";
import type { PluginHost } from "../../../../kernel/src/plugin/plugin-host.ts";
import type { ServiceRequest } from "../../../../kernel/src/plugin/service-request.ts";
import { entryFor, FIXTURES, never, openHost, SESSION } from "./open-host.ts";

const session: ServiceRequest["session"] = { sessionId: SESSION, rootSessionId: SESSION };

async function openProvider(limits = {}) {
  const firstParty = await loadFirstParty([join(FIXTURES, "provider")]);
  return openHost({ firstParty, limits });
}

function serve(host: PluginHost, more: Partial<ServiceRequest> = {}, signal = never()) {
  return host.serve({ service: "skills", method: "skills.list", params: {}, ...more }, signal);
}

test("[E-122] a request goes to the plugin that provides the service, which is started for it", async () => {
  const { host } = await openProvider();
  expect(host.status()[0]).toMatchObject({ plugin: "provider", pid: null });
  const { request } = await serve(host, { params: { name: "x" } });
  expect(request).toEqual({ service: "skills", method: "skills.list", params: { name: "x" } });
  expect(host.status()[0]).toMatchObject({ state: "connected" });
});

test("[E-122] with a session comes a right to it, of scope request, that ends with the answer", async () => {
  const { host } = await openProvider();
  const ask = ["host/artifacts/write", "host/media/deliver"];
  const first = await serve(host, { session, params: { ask } });
  expect(first["asked"]).toEqual(["invalid_params", "context_invalid"]);
  expect(await serve(host, { session })).toMatchObject({ again: "context_invalid" });
});

test("[E-122] the plugin's error is the answer, and a service that nobody provides says so", async () => {
  const { host } = await openProvider();
  await expect(serve(host, { method: "fail" })).rejects.toMatchObject({ code: "skill_unknown" });
  await expect(serve(host, { service: "mcp" })).rejects.toMatchObject({
    code: "plugin_unavailable",
    message: "no plugin provides mcp",
  });
});

test("[E-122] a plugin that does not answer is given up after its time, or when nobody waits any more", async () => {
  const { host } = await openProvider({ serviceTimeoutMs: 50 });
  await expect(serve(host, { method: "hang" })).rejects.toMatchObject({ code: "timeout" });
  const patient = await openProvider();
  const controller = new AbortController();
  const answer = serve(patient.host, { method: "hang" }, controller.signal);
  controller.abort();
  await expect(answer).rejects.toMatchObject({ code: "cancelled" });
});

test("[E-114] [E-122] only a shipped plugin may provide a service", async () => {
  const { host } = await openHost({ entries: [entryFor("provider")] });
  expect(host.status()[0]).toMatchObject({ state: "failed" });
  await expect(serve(host)).rejects.toMatchObject({ code: "plugin_unavailable" });
});
