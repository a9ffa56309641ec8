import { readFileSync } from "node:fs";
import { watchStandardStreams } from "./standard-streams.ts";

const argv = process.argv.slice(2);
const packageFile = new URL("../package.json", import.meta.url);

if (argv[0] === "--version") {
  watchStandardStreams(false);
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  process.stdout.write(`${version}\n`);
} else {
  const { main } = await import("./run-cli.ts");
  await main(argv, packageFile);
}
