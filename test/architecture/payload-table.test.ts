import { readFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_PAYLOADS } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";

const SHEET = readFileSync(join(import.meta.dirname, "../../docs/spec/sessions.md"), "utf8");
const TABLES = SHEET.slice(
  SHEET.indexOf("### 2.3 Payload types"),
  SHEET.indexOf("### 2.4 Strict writing"),
);

/** Of parts that do not exist yet: skills, delegation, producers and goals. */
const NOT_YET = [
  "delegate_child_terminated",
  "delegate_finished",
  "delegate_queued",
  "delegated_context_seeded",
  "delegation_finished",
  "delegation_reserved",
  "delegation_run_attached",
  "delegation_run_started",
  "delegation_started",
  "goal_activated",
  "goal_checklist_revised",
  "goal_lifecycle_changed",
  "producer_message_accepted",
  "producer_message_admitted",
  "producer_message_consumed",
  "producer_message_discarded",
  "producer_messages_claimed",
  "producer_messages_released",
  "skill_invocation_noted",
  "skill_loaded",
  "tool_call_linked",
];

/** Written out in the sheet as "7 revisions". */
const REVISIONS =
  /^(?:runtime|catalog|provider_state|model|agent|recipe_registry|manifest)_revision$/;

test("[S-040] every payload type of the sheet is written with the fields that it lists", () => {
  const rows = rowsOfTypes();
  const written = Object.keys(EVENT_PAYLOADS);
  expect([...rows.keys()].filter((type) => !written.includes(type)).sort()).toEqual(NOT_YET);
  expect(written.filter((type) => !rows.has(type))).toEqual([]);
  const unlisted = Object.entries(EVENT_PAYLOADS).flatMap(([type, { shape }]) =>
    Object.keys(shape)
      .filter((field) => field !== "type")
      .filter((field) => !lists(rows.get(type) ?? "", field))
      .map((field) => `${type}.${field}`),
  );
  expect(unlisted).toEqual([]);
});

/** The cells behind each type; a row may name several, and "…" stands for the fields of the row before. */
function rowsOfTypes(): Map<string, string> {
  const rows = new Map<string, string>();
  let before = "";
  for (const line of TABLES.split("\n")) {
    const [, names = "", fields = ""] =
      /^\| ([a-z_/ ]+?)(?: \(child log\))? \| (.*) \|$/.exec(line) ?? [];
    // A member of `delegation_reserved`, written out in a row of its own.
    if (
      names === "staged_skill" ||
      !/^[a-z_]+(?: \/ [a-z_]+)*$/.test(names) ||
      !names.includes("_")
    ) {
      continue;
    }
    const own = fields.includes("…") ? `${fields} ${before}` : fields;
    for (const name of names.split(" / ")) rows.set(name, own);
    before = own;
  }
  return rows;
}

function lists(fields: string, field: string): boolean {
  if (REVISIONS.test(field)) return fields.includes("7 revisions");
  return new RegExp(`\\b${field}\\b`).test(fields);
}
