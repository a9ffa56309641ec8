import { MAX_FRAME_BYTES } from "../../protocol/version.ts";
import type { Check } from "./check.ts";
import type { PluginPeer } from "./plugin-peer.ts";
import { fail } from "./verdict.ts";

/** No pipe hands over so much at once, and pieces of a power of two cut its characters. */
const CUT_BY_PIPE = "€".repeat(100_000);

/** A shell reads a line byte by byte, and the machine may be busy: so many times as long as for any other answer. */
const LONG_LINE_PATIENCE = 6;

export const checkLines: Check = {
  id: "C-01",
  title: "lines: CR, blank lines, split characters, 4 MiB, no LF behind the last",
  ids: ["E-001", "E-002"],
  async run(bench) {
    const { answerMs } = bench.limits;
    const { peer } = await bench.start(await bench.folder());
    await answers(peer, "a line that ends with CR LF", answerMs, (ping) => [ping, "\r\n"]);
    await answers(peer, "an empty line", answerMs, (ping) => ["\n\r\n", ping, "\n"]);
    await answers(
      peer,
      "a line that came in pieces, cut inside characters",
      answerMs,
      (ping) => [ping, "\n"],
      CUT_BY_PIPE,
    );
    const patient = answerMs * LONG_LINE_PATIENCE;
    await answers(peer, "a line of 4 MiB", patient, (ping) => {
      const room = MAX_FRAME_BYTES - ping.byteLength;
      return [ping.subarray(0, -1), " ".repeat(room), "}\n"];
    });
    const last = answers(peer, "a last line that ended with its input", answerMs, (ping) => [ping]);
    peer.closeInput();
    await last;
  },
};

async function answers(
  peer: PluginPeer,
  what: string,
  timeoutMs: number,
  lines: (ping: Buffer) => readonly (string | Uint8Array)[],
  mark = "",
): Promise<void> {
  const id = `line-${mark}${peer.driver.takeId()}`;
  const answer = peer.driver.awaitAnswer(id, timeoutMs);
  const ping = peer.encode({ id, method: "plugin/ping", params: {} });
  for (const part of lines(ping)) peer.write(part);
  const settled = await answer;
  if (settled.kind === "none") {
    fail(
      `did not answer ${what}: ${settled.why}`,
      "read up to LF or the end of input, drop one CR, skip empty lines, and take 4 MiB",
    );
  }
}
