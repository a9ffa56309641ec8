import type { ConformanceReport } from "@cookie-agent/sdk/testing";

/** The report as the XML that continuous integration reads. */
export function renderJunit({ plugin, results }: ConformanceReport): string {
  const count = (outcome: string) => results.filter((each) => each.outcome === outcome).length;
  const cases = results.map(({ check, title, run, outcome, reason, ids }) => {
    const head = `    <testcase classname="${escapeXml(`${plugin}.${run}`)}" name="${escapeXml(`${check} ${title} [${ids.join(" ")}]`)}"`;
    if (outcome === "passed") return `${head}/>`;
    const element = outcome === "failed" ? "failure" : "skipped";
    return `${head}>\n      <${element} message="${escapeXml(reason ?? "")}"/>\n    </testcase>`;
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    "<testsuites>",
    `  <testsuite name="${escapeXml(plugin)}" tests="${results.length}" failures="${count("failed")}" skipped="${count("skipped")}">`,
    ...cases,
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

/** XML takes no control characters, in whatever form. */
function escapeXml(text: string): string {
  return text
    .replace(/\p{Cc}/gu, " ")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}
