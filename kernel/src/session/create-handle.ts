import { randomBytes } from "node:crypto";
import { CookieError } from "@cookie-agent/sdk/protocol";

const MAX_DRAWS = 16;
const NONE: ReadonlySet<string> = new Set();

/**
 * `<agent slug>_<8 hex>`: how people and models name a session (S-013). Throws `engine` when sixteen draws are all
 * among `taken`, the handles of the same tree (S-014).
 */
export function createHandle(
  agent: string,
  taken = NONE,
  draw: () => string = () => randomBytes(4).toString("hex"),
): string {
  const slug = agent.slice(0, 16).replace(/-+$/, "");
  for (let draws = 0; draws < MAX_DRAWS; draws += 1) {
    const handle = `${slug === "" ? "a" : slug}_${draw()}`;
    if (!taken.has(handle)) return handle;
  }
  throw new CookieError(
    "engine",
    `no free handle for a session of agent ${agent} was found in ${MAX_DRAWS} draws; try again`,
  );
}
