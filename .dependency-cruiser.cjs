/** The order of the house: a stage imports only stages below it (docs/architecture/tool-call.md). */
const STAGES = [
  "daemon",
  "delegation",
  "session",
  "run",
  "internal-agent",
  "model",
  "tool",
  "permission",
  "plugin",
  "artifact",
  "event",
  "store",
  "usage",
  "config",
];

const stageRules = STAGES.slice(1).map((stage, index) => ({
  name: `kernel-${stage}-looks-down`,
  comment: `${stage}/ imports only stages below it; what it needs from above is an interface it declares`,
  severity: "error",
  from: { path: `^kernel/src/${stage}/` },
  to: { path: `^kernel/src/(?:${STAGES.slice(0, index + 1).join("|")})/|^kernel/src/[^/]+\\.ts$` },
}));

module.exports = {
  forbidden: [
    { name: "no-cycle", severity: "error", from: {}, to: { circular: true } },
    {
      name: "daemon-looks-down",
      severity: "error",
      from: { path: "^kernel/src/daemon/" },
      to: { path: "^kernel/src/[^/]+\\.ts$" },
    },
    ...stageRules,
    {
      name: "support-knows-no-stage",
      severity: "error",
      from: { path: "^kernel/src/support/" },
      to: { path: "^kernel/src/(?!support/)" },
    },
    {
      name: "model-apart-from-tools",
      severity: "error",
      from: { path: "^kernel/src/model/" },
      to: { path: "^kernel/src/(?:tool|permission|plugin|artifact)/" },
    },
    {
      name: "kernel-imports-contract-only",
      severity: "error",
      from: { path: "^kernel/" },
      to: { path: "^(?:cli|plugins|test)/|^sdk/(?:src|dist)/(?:plugin|client|host|agent)/" },
    },
    {
      name: "plugins-import-sdk-plugin-only",
      severity: "error",
      from: { path: "^plugins/([^/]+)/" },
      to: { path: "^(?:cli|kernel|test)/|^sdk/(?:src|dist)/(?!plugin/)|^plugins/(?!$1/)" },
    },
    {
      name: "sdk-imports-nobody",
      severity: "error",
      from: { path: "^sdk/" },
      to: { path: "^(?:cli|kernel|plugins|test)/" },
    },
    {
      name: "protocol-imports-zod-only",
      severity: "error",
      from: { path: "^sdk/src/protocol/" },
      to: { pathNot: "^sdk/src/protocol/|node_modules/zod/" },
    },
    {
      name: "rpc-imports-protocol-only",
      severity: "error",
      from: { path: "^sdk/src/rpc/" },
      to: { path: "^sdk/src/(?!rpc/|protocol/)" },
    },
    {
      name: "plugin-and-client-never-meet",
      severity: "error",
      from: { path: "^sdk/src/plugin/" },
      to: { path: "^sdk/src/(?:client|agent|host|testing)/" },
    },
    {
      name: "client-and-plugin-never-meet",
      severity: "error",
      from: { path: "^sdk/src/(?:client|agent)/" },
      to: { path: "^sdk/src/(?:plugin|host)/" },
    },
    {
      name: "testing-is-not-imported",
      comment:
        "the test kit builds on the contract, and nothing that ships in a plugin or the kernel builds on it",
      severity: "error",
      from: { path: "^(?:sdk/src/(?!testing/)|kernel/|plugins/)" },
      to: { path: "^sdk/(?:src|dist)/testing/" },
    },
    {
      name: "testing-knows-no-client",
      severity: "error",
      from: { path: "^sdk/src/testing/" },
      to: { path: "^sdk/src/(?:client|agent|host)/" },
    },
    {
      name: "cli-imports-entries",
      severity: "error",
      from: { path: "^cli/" },
      to: { path: "^plugins/|^test/|^kernel/(?:src|dist)/(?!index\\.)" },
    },
    {
      name: "json-rpc-in-sdk-rpc",
      severity: "error",
      from: { pathNot: "^sdk/src/rpc/" },
      to: { path: "node_modules/(?:vscode-jsonrpc|ws)/" },
    },
    {
      name: "ai-sdk-in-model",
      severity: "error",
      from: { pathNot: "^kernel/src/model/" },
      to: { path: "node_modules/(?:ai|@ai-sdk)/" },
    },
    {
      name: "oclif-in-cli",
      severity: "error",
      from: { pathNot: "^cli/" },
      to: { path: "node_modules/@oclif/" },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules|/dist/" },
    exclude: { path: "/dist/" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      conditionNames: ["@cookie-agent/source", "import", "node", "default"],
      exportsFields: ["exports"],
    },
  },
};
