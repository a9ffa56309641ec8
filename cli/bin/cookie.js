#!/usr/bin/env node
import { existsSync } from "node:fs";

const entry = new URL("../dist/main.js", import.meta.url);
if (existsSync(entry)) {
  await import(entry.href);
} else {
  process.stderr.write("error: cookie is not built yet; run `npm run build` in its checkout\n");
  process.exitCode = 1;
}
