import { expect, test } from "vitest";
import type { Config } from "../../../../kernel/src/config/config.ts";
import { describeSection } from "../../../../kernel/src/config/describe-section.ts";
import { Secret } from "../../../../kernel/src/config/secret.ts";

const config = {
  contextCompaction: { auto: true, trigger: { kind: "percent", percent: 80 }, maxSummaryBytes: 1 },
  budget: {},
  tools: { profile: "cookie", include: [], implementations: new Map([["someTool", "fastBash"]]) },
  mcp: {
    servers: new Map([
      [
        "myServer",
        {
          name: "myServer",
          transport: {
            kind: "http",
            url: "https://example.test",
            headers: { Authorization: "Bearer words" },
            oauth: { clientId: "id", clientSecret: Secret.of("hidden"), scopes: ["a"] },
          },
          timeoutMs: 5,
        },
      ],
      [
        "local",
        { transport: { kind: "stdio", command: "run", args: [], env: { TOKEN: "words" } } },
      ],
    ]),
  },
  plugins: [{ config: { key: "words" } }],
} as unknown as Config;

test("names are those of the file, also inside, and chosen names stay as they are", () => {
  expect(describeSection(config, "context_compaction")).toEqual({
    auto: true,
    trigger: { kind: "percent", percent: 80 },
    max_summary_bytes: 1,
  });
  expect(describeSection(config, "tools")).toEqual({
    profile: "cookie",
    include: [],
    implementations: { someTool: "fastBash" },
  });
  expect(describeSection(config, "budget")).toEqual({});
});

test("[E-121] every secret is null, also one that stands in a header or an environment", () => {
  const described = describeSection(config, "mcp");
  expect(described).toMatchObject({
    servers: {
      myServer: {
        transport: {
          headers: { Authorization: null },
          oauth: { client_secret: null, scopes: ["a"] },
        },
        timeout_ms: 5,
      },
      local: { transport: { env: { TOKEN: null } } },
    },
  });
  expect(JSON.stringify(described)).not.toMatch(/words|hidden|redacted/);
});

test.for(["plugins", "contextCompaction", "toString", "__proto__", ""])(
  "there is no section %j",
  (name) => {
    expect(describeSection(config, name)).toBeUndefined();
  },
);
