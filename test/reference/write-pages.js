import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runnerImport } from "vite";

const source = fileURLToPath(new URL("protocol-pages.ts", import.meta.url));
const { module } = await runnerImport(source);
const pages = module.protocolPages();
const directory = module.REFERENCE_DIRECTORY;
await mkdir(directory, { recursive: true });
for (const file of await readdir(directory)) {
  if (!pages.has(file)) await rm(join(directory, file));
}
for (const [file, text] of pages) await writeFile(join(directory, file), text);
process.stdout.write(`${pages.size} pages in docs/protocol\n`);
