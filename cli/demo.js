import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("..", import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), "cookie-demo-"));
const prompt = [
  'call read {"filePath":"README.md","limit":3}',
  'call bash {"command":"echo \\"this is $(uname -s), $(node --version)\\"; ls"}',
].join("\n");

process.stdout.write(`$ cookie run -m offline/script --permission-mode yolo '${prompt}'\n\n`);
const run = spawnSync(
  process.execPath,
  [
    fileURLToPath(new URL("bin/cookie.js", import.meta.url)),
    "run",
    "--model=offline/script",
    "--permission-mode=yolo",
    `--data-dir=${dataDir}`,
    prompt,
  ],
  { cwd: repository, stdio: ["ignore", "inherit", "inherit"] },
);

if (run.status === 0) {
  process.stdout.write("\nThe session log, event by event:\n\n");
  for (const line of readLog(join(dataDir, "sessions"))) {
    const { seq, payload } = JSON.parse(line);
    process.stdout.write(`${String(seq).padStart(4)}  ${payload.type}\n`);
  }
}
rmSync(dataDir, { recursive: true, force: true });
process.exitCode = run.status ?? 1;

function readLog(sessions) {
  const file = readdirSync(sessions, { recursive: true }).find((name) =>
    String(name).endsWith("events.jsonl"),
  );
  return readFileSync(join(sessions, String(file)), "utf8")
    .trimEnd()
    .split("\n");
}
