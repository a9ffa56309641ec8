import { expect, test } from "vitest";
import * as hostMethods from "../../../../sdk/src/protocol/host-methods.ts";
import * as pluginMethods from "../../../../sdk/src/protocol/plugin-methods.ts";

function methodsOf(module: object): string[] {
  return Object.values(module).flatMap((value: unknown) =>
    typeof value === "object" && value !== null && "kind" in value && "name" in value
      ? [String(value.name)]
      : [],
  );
}

test("[E-005] the prefix of a method tells who asks whom", () => {
  const toPlugin = methodsOf(pluginMethods);
  // Spoken on the channel `$host`, by the kernel to the process and to no plugin (E-014).
  const toProcess = toPlugin.filter((name) => name.startsWith("process/"));
  expect(toProcess).toEqual(["process/attach", "process/detach"]);
  const others = toPlugin.filter((name) => !toProcess.includes(name));
  expect(others.length).toBeGreaterThan(5);
  expect(others.filter((name) => !name.startsWith("plugin/"))).toEqual([]);
  const toKernel = methodsOf(hostMethods);
  expect(toKernel.length).toBeGreaterThan(3);
  expect(toKernel.filter((name) => !name.startsWith("host/"))).toEqual([]);
});
