import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { titlesOf } from "../support/test-titles.ts";
import { claimsOf, FAULTS, type Fault, IMPOSSIBLE, PLACES, type Place } from "./fault-matrix.ts";

const TESTS = join(import.meta.dirname, "..");
export const RELIABILITY_PAGE = join(TESTS, "../docs/reliability.md");

interface Proof {
  readonly file: string;
  readonly title: string;
  readonly cells: readonly { fault: Fault; place: Place }[];
}

/** The fault matrix as the titles of the tests declare it. */
export function reliabilityPage(): string {
  const proofs = readProofs();
  const faults = Object.keys(FAULTS) as Fault[];
  const places = Object.keys(PLACES) as Place[];
  const rows = faults.map((fault) => [
    `**${fault}**`,
    ...places.map((place) => cellOf(proofs, fault, place)),
  ]);
  return `# Reliability

What was said to be done is on the disk, whatever happens next: no event that a client was shown is lost, nothing is half
there, and the next run works. This page says which faults are tried at which place. It is written by
\`npm run reference\` from the titles of the tests; a test fails when it says something else than they do.

A number names a test below. "–" cannot happen, "open" is not proved yet.

${table([["", ...places], ["---", ...places.map(() => "---")], ...rows])}
## Faults

${table([["Fault", "What happens"], ["---", "---"], ...Object.entries(FAULTS)])}
## Places

${table([["Place", "The fault strikes while"], ["---", "---"], ...Object.entries(PLACES)])}
## Tests

${proofs.map(({ file, title }, index) => `${index + 1}. ${title} ([${file}](../test/${file}))\n`).join("")}
Some of these tests try a part of their cases in each run. \`COOKIE_FAULT_RUNS=all npm test\` tries them all.
`;
}

function readProofs(): Proof[] {
  return readdirSync(join(TESTS, "fault"))
    .filter((name) => name.endsWith(".test.ts"))
    .sort()
    .map((name) => `fault/${name}`)
    .flatMap((file) =>
      titlesOf(file, readFileSync(join(TESTS, file), "utf8")).map((title) => ({
        file,
        title: sayTitle(title),
        cells: claimsOf(title),
      })),
    )
    .filter(({ cells }) => cells.length > 0);
}

/** Without tags; where a table fills in something, an ellipsis. */
function sayTitle(title: string): string {
  return title
    .replace(/\[[^\]]+\] ?/g, "")
    .replace(/[%$][a-z]\w*/g, "…")
    .trim();
}

function cellOf(proofs: readonly Proof[], fault: Fault, place: Place): string {
  const numbers = proofs.flatMap(({ cells }, index) =>
    cells.some((cell) => cell.fault === fault && cell.place === place) ? [index + 1] : [],
  );
  if (numbers.length > 0) return numbers.join(", ");
  return IMPOSSIBLE[fault]?.includes(place) === true ? "–" : "open";
}

function table(rows: readonly (readonly string[])[]): string {
  return rows.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
