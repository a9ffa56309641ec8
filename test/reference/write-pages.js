import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const load = async (name) =>
  (await runnerImport(fileURLToPath(new URL(name, import.meta.url)))).module;
const { protocolPages, REFERENCE_DIRECTORY: directory } = await load("protocol-pages.ts");
const pages = protocolPages();
await mkdir(directory, { recursive: true });
for (const file of await readdir(directory)) {
  if (!pages.has(file)) await rm(join(directory, file));
}
for (const [file, text] of pages) await writeFile(join(directory, file), text);
const { reliabilityPage, RELIABILITY_PAGE } = await load("reliability-page.ts");
await writeFile(RELIABILITY_PAGE, reliabilityPage());
process.stdout.write(`${pages.size} pages in docs/protocol, docs/reliability.md\n`);
