import { fileURLToPath } from "node:url";
import { Config, loadHelpClass } from "@oclif/core";

/** Prints the help of a command, of a topic, or of the program. */
export async function showHelp(words: readonly string[], packageFile: URL): Promise<void> {
  const config = await Config.load({ root: fileURLToPath(new URL(".", packageFile)) });
  const Help = await loadHelpClass(config);
  await new Help(config).showHelp([...words]);
}
