import * as protocol from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import * as z from "zod";
import { openDaemon } from "../../support/open-daemon.ts";
import { openRaw } from "../../support/raw-websocket.ts";

/** Not any value that a member of any method takes. */
const WRONG = { neither: ["text", 7] };

const METHODS = Object.values(protocol as Record<string, unknown>).filter(isClientMethod);

test("[D-012] [D-140] every method refuses an unknown member and each member of another type, and does nothing", async () => {
  const daemon = await openDaemon();
  const socket = await openRaw(daemon);
  await socket.greet();
  let id = 1;
  const tried: string[] = [];
  for (const method of METHODS) {
    for (const params of wrongParams(method)) {
      const label = `${method.name} ${JSON.stringify(params)}`;
      expect(await socket.call(++id, method.name, params), label).toMatchObject({
        error: { code: -32602, data: { code: "invalid_params" } },
      });
      tried.push(label);
    }
  }
  expect(tried.length).toBeGreaterThan(METHODS.length * 2);
  expect(await socket.call(++id, "session.list", { everywhere: true })).toMatchObject({
    result: { sessions: [] },
  });
  socket.socket.destroy();
});

/** An unknown member, a list in the place of the object, and each known member as what it cannot be. */
function wrongParams({ params }: protocol.Method): unknown[] {
  const { properties = {} } = z.toJSONSchema(params, { unrepresentable: "any", io: "input" }) as {
    properties?: Readonly<Record<string, object>>;
  };
  const members = Object.entries(properties).filter(([, schema]) => !takesObjects(schema));
  return [
    { unknown_member: 1 },
    [],
    ...members.map(([name]) => ({ [name]: WRONG })),
    JSON.parse('{"__proto__": {}}'),
  ];
}

/** Such as arguments of a tool, which may be any object. */
function takesObjects(schema: object): boolean {
  return "type" in schema && schema.type === "object" && !("properties" in schema);
}

function isClientMethod(value: unknown): value is protocol.Method {
  if (typeof value !== "object" || value === null) return false;
  if (!("kind" in value) || value.kind !== "request" || !("name" in value)) return false;
  return typeof value.name === "string" && /^[a-z_]+(?:\.[a-z_]+)+$/.test(value.name);
}
