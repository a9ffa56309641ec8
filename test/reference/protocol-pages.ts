import { join } from "node:path";
import {
  ERROR_NUMBERS,
  EVENT_PAYLOADS,
  grantOf,
  RUNLESS_EVENTS,
  STREAM_EVENTS,
} from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import { type Constant, collectSurface, type Message, type Surface } from "./collect-surface.ts";
import { code, firstSentence, sentence, slug, table } from "./markdown.ts";
import { type Draft, NOTICE, placeTypes } from "./place-types.ts";
import { NO_DOCS } from "./read-docstrings.ts";
import { SchemaTable } from "./schema-table.ts";

const REPOSITORY = join(import.meta.dirname, "../..");

/** The folder that holds the pages and nothing else. */
export const REFERENCE_DIRECTORY = join(REPOSITORY, "docs/protocol");

/** The reference of the extension protocol, page by page. */
export function protocolPages(): ReadonlyMap<string, string> {
  const surface = collectSurface(join(REPOSITORY, "sdk/src/protocol"));
  const names = new Map([...surface.schemas].map(([name, schema]) => [schema, name]));
  const schemas = new SchemaTable({
    nameOf: (schema) => names.get(schema),
    docsOf: surface.docsOf,
  });
  const drafts = [
    manifestPage(),
    ...messagePages(surface, schemas),
    eventPage(surface, schemas),
    errorPage(surface),
  ];
  const pages = placeTypes(drafts, surface, schemas);
  return new Map([["README.md", indexPage(drafts, surface.constants)], ...pages]);
}

function manifestPage(): Draft {
  return {
    file: "manifest.md",
    title: "The manifest",
    about: "`cookie-plugin.json`: what the kernel knows of a plugin while no process runs",
    body: [],
    types: ["Manifest"],
  };
}

const DIRECTION = { kernel: "kernel to plugin", plugin: "plugin to kernel" } as const;
const HOOK_PREFIX = "plugin/intercept/";

function messagePages({ messages }: Surface, schemas: SchemaTable): Draft[] {
  const all = [...messages.values()];
  const sentBy = (sender: Message["sender"], isHook: boolean) =>
    all.filter(
      ([first]) =>
        first?.sender === sender && first.declared.name.startsWith(HOOK_PREFIX) === isHook,
    );
  const drafts = [
    {
      file: "kernel-to-plugin.md",
      title: "From the kernel to a plugin",
      about: "what a plugin is asked and told",
      groups: sentBy("kernel", false),
    },
    {
      file: "hooks.md",
      title: "Hooks",
      about: "what a plugin may look at, change or stop before it happens",
      groups: sentBy("kernel", true),
    },
    {
      file: "plugin-to-kernel.md",
      title: "From a plugin to the kernel",
      about: "what a plugin may ask for and report",
      groups: sentBy("plugin", false),
    },
  ];
  return drafts
    .filter(({ groups }) => groups.length > 0)
    .map(({ groups, ...page }) => ({
      ...page,
      body: [contents(groups), ...groups.map((group) => describeMessage(group, schemas))],
    }));
}

function contents(groups: readonly (readonly Message[])[]): string {
  const rows = groups.map((group) => {
    const name = group[0]?.declared.name ?? "";
    return [`[${code(name)}](#${slug(name)})`, kindOf(group), firstSentence(textOf(group))];
  });
  return table(["Name", "Kind", "About"], rows);
}

function describeMessage(group: readonly Message[], schemas: SchemaTable): string {
  const [first] = group;
  if (first === undefined) return "";
  const { declared, docs } = first;
  const grant = grantOf(declared.name);
  const isRaw = declared.kind === "notification" && declared.raw;
  const [params = NO_DOCS, result = NO_DOCS] = docs.parts;
  const isOnlyParams = declared.kind === "notification" && docs.parts.length === 0;
  const parts = [
    `## ${code(declared.name)}`,
    [
      `*${sentence(`${kindOf(group)}, ${DIRECTION[first.sender]}`)}*`,
      textOf(group),
      grant === undefined ? "" : `Needs ${code(grant)} in \`capabilities.host\` (E-118).`,
      isRaw ? "Raw bytes may follow its frame (E-016)." : "",
    ]
      .filter((part) => part !== "")
      .join(" "),
    `**Params**\n\n${schemas.describe(declared.params, isOnlyParams ? docs : params)}`,
  ];
  if (declared.kind === "request") {
    parts.push(`**Result**\n\n${schemas.describe(declared.result, result)}`);
  }
  return parts.join("\n\n");
}

function textOf(group: readonly Message[]): string {
  return group
    .flatMap(({ docs }) => (docs.text === undefined ? [] : [sentence(docs.text)]))
    .join(" ");
}

function kindOf(group: readonly Message[]): string {
  return group.map(({ declared }) => declared.kind).join(" or ");
}

function eventPage(surface: Surface, schemas: SchemaTable): Draft {
  const docs = surface.docsOf("EVENT_PAYLOADS");
  const events = Object.entries(EVENT_PAYLOADS);
  const rows = events.map(([type]) => [
    `[${code(type)}](#${slug(type)})`,
    STREAM_EVENTS.has(type) ? "stream" : "commit",
    RUNLESS_EVENTS.must.has(type)
      ? "never"
      : RUNLESS_EVENTS.may.has(type)
        ? "or outside"
        : "always",
    firstSentence(docs.members.get(type)?.text ?? ""),
  ]);
  const sections = events.map(([type, payload]) => {
    const own = docs.members.get(type) ?? NO_DOCS;
    const { type: _, ...shape } = payload.shape;
    const body = schemas.describe(z.object(shape), own);
    return [`## ${code(type)}`, ...(own.text === undefined ? [] : [sentence(own.text)]), body].join(
      "\n\n",
    );
  });
  return {
    file: "events.md",
    title: "Events",
    about: "what a session records, and a subscriber hears as `event` of `plugin/event`",
    body: [
      `${sentence(docs.text ?? "")} Beside its members each has \`type\`, its name. ` +
        "*Commit* events decide something and are on disk before anything acts on them; *stream* events are " +
        "published as they come. The third column says whether the event belongs to a run.",
      table(["Event", "Class", "In a run", "About"], rows),
      ...sections,
    ],
  };
}

function errorPage(surface: Surface): Draft {
  const { members } = surface.docsOf("ERROR_NUMBERS");
  const rows = Object.entries(ERROR_NUMBERS).map(([name, number]) => [
    code(name),
    String(number),
    sentence(members.get(name)?.text ?? ""),
  ]);
  return {
    file: "errors.md",
    title: "Errors",
    about: "the codes in `error.data.code`",
    body: [
      "An error is `{code, message, data: {code}}`: a number for libraries, one line for whoever must act, and the " +
        "stable word of this table (E-171). A plugin may use words of its own, with number -32000.",
      table(["Code", "Number", "About"], rows),
    ],
  };
}

function indexPage(drafts: readonly Draft[], constants: readonly Constant[]): string {
  const pages = [
    ...drafts,
    { file: "values.md", title: "Plain values", about: "ids, names, digests" },
  ];
  const rows = pages.map(({ file, title, about }) => [`[${title}](${file})`, sentence(about)]);
  const limits = constants.map(({ name, value, text }) => [
    code(name),
    String(value),
    sentence(text),
  ]);
  return `${NOTICE}

# The extension protocol, name by name

What the kernel and a plugin say to each other, from the schemas that check it on both sides.
[Your first plugin](../guides/your-first-plugin.md) begins with nothing;
[the specification](../spec/extension-protocol.md) tells the order and the reasons, and holds the rules that numbers
such as E-090 stand for.

${table(["Page", "About"], rows)}

## How to read it

- A message is a JSON-RPC 2.0 object on a line of its own. A *request* has an \`id\` and is answered with a result or an
  error; a *notification* is not answered.
- A \`?\` behind a member: it may be absent. \`a.b\` is a member of \`a\`, \`a[].b\` a member of each item of \`a\`.
- The kernel rejects a member that it does not know; only \`_meta\` may stand everywhere. A plugin ignores what it does not
  know (E-006).
- Bytes are bytes of UTF-8. Durations are milliseconds.

## Numbers

${table(["Name", "Value", "About"], limits)}
`;
}
