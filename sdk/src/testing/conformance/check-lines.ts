import { MAX_FRAME_BYTES } from "../../protocol/version.ts";
import type { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import type { PluginPeer } from "./plugin-peer.ts";
import { fail } from "./verdict.ts";

/** No pipe hands over so much at once, and pieces of a power of two cut its characters. */
const CUT_BY_PIPE = "€".repeat(100_000);

export const checkLines: Check = {
  id: "C-01",
  title: "lines: CR, blank lines, split characters, 4 MiB",
  ids: ["E-001", "E-002"],
  async run(bench) {
    const { peer } = await bench.start(await bench.folder());
    await answers(bench, peer, "a line that ends with CR LF", (ping) => [ping, "\r\n"]);
    await answers(bench, peer, "an empty line", (ping) => ["\n\r\n", ping, "\n"]);
    await answers(
      bench,
      peer,
      "a line that came in pieces, cut inside characters",
      (ping) => [ping, "\n"],
      CUT_BY_PIPE,
    );
    await answers(bench, peer, "a line of 4 MiB", (ping) => {
      const room = MAX_FRAME_BYTES - ping.byteLength;
      return [ping.subarray(0, -1), " ".repeat(room), "}\n"];
    });
  },
};

async function answers(
  bench: Bench,
  peer: PluginPeer,
  what: string,
  lines: (ping: Buffer) => readonly (string | Uint8Array)[],
  mark = "",
): Promise<void> {
  const id = `line-${mark}${peer.driver.takeId()}`;
  const answer = peer.driver.awaitAnswer(id, bench.limits.answerMs);
  const ping = peer.encode({ id, method: "plugin/ping", params: {} });
  for (const part of lines(ping)) peer.write(part);
  const settled = await answer;
  if (settled.kind === "none") {
    fail(
      `did not answer ${what}: ${settled.why}`,
      "read up to LF, drop one CR, skip empty lines, and take 4 MiB",
    );
  }
}
