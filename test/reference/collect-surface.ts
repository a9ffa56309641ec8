import type { Method, Notification } from "@cookie-agent/sdk/protocol";
import * as protocol from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { type Docs, NO_DOCS, readDocstrings } from "./read-docstrings.ts";
import type { Schema } from "./schema-words.ts";

/** One message of the extension protocol. */
export interface Message {
  readonly declared: Method | Notification;
  readonly docs: Docs;
  /** The kernel takes nothing from a plugin but what it knows, so the schema tells who sends it (E-006). */
  readonly sender: "kernel" | "plugin";
}

/** A number or word that both sides have to know. */
export interface Constant {
  readonly name: string;
  readonly value: number | string;
  readonly text: string;
}

/** Everything that the contract exports, as a reference needs it. */
export interface Surface {
  /** By wire name; some are a request and a notification at once. */
  readonly messages: ReadonlyMap<string, readonly Message[]>;
  readonly schemas: ReadonlyMap<string, Schema>;
  readonly constants: readonly Constant[];
  docsOf(exportName: string): Docs;
}

export function collectSurface(sourceDirectory: string): Surface {
  const docs = readDocstrings(sourceDirectory);
  const docsOf = (name: string) => docs.get(name) ?? NO_DOCS;
  const schemas = new Map<string, Schema>();
  const constants: Constant[] = [];
  const messages: Message[] = [];
  const exported: [string, unknown][] = Object.entries(protocol);
  for (const [name, value] of exported.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = docsOf(name);
    if (value instanceof z.ZodType) schemas.set(name, value);
    else if (isMessage(value)) messages.push(messageOf(value, own));
    else if (typeof value === "number" || typeof value === "string") {
      constants.push({ name, value, text: own.text ?? "" });
    } else if (isRecord(value)) {
      for (const [index, [key, member]] of Object.entries(value).entries()) {
        const inner = own.members.get(key) ?? NO_DOCS;
        if (isMessage(member)) messages.push(messageOf(member, inner));
        else if (typeof member === "number" && value !== protocol.ERROR_NUMBERS) {
          const text = [index === 0 ? own.text : undefined, inner.text].filter(Boolean).join(" ");
          constants.push({ name: `${name}.${key}`, value: member, text });
        }
      }
    }
  }
  return { messages: byWireName(messages), schemas, constants, docsOf };
}

/** The messages of plugins have a path for a name, those of clients do not; a record of them keeps its order. */
function byWireName(messages: readonly Message[]): ReadonlyMap<string, Message[]> {
  const found = new Map<string, Message[]>();
  for (const message of messages) {
    const { name, kind } = message.declared;
    if (!name.includes("/")) continue;
    const same = found.get(name) ?? [];
    found.set(name, kind === "request" ? [message, ...same] : [...same, message]);
  }
  const folders = [...new Set([...found.keys()].map(folderOf))].sort();
  return new Map(
    folders.flatMap((folder) => [...found].filter(([name]) => folderOf(name) === folder)),
  );
}

function folderOf(name: string): string {
  return name.slice(0, name.lastIndexOf("/"));
}

function messageOf(declared: Method | Notification, docs: Docs): Message {
  const { params } = declared;
  const isStrict = params instanceof z.ZodObject && params.def.catchall instanceof z.ZodNever;
  return { declared, docs, sender: isStrict ? "plugin" : "kernel" };
}

function isMessage(value: unknown): value is Method | Notification {
  return (
    isRecord(value) && "kind" in value && "params" in value && typeof value["name"] === "string"
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !(value instanceof Set);
}
