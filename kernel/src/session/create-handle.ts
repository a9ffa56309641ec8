import { randomBytes } from "node:crypto";

/** `<agent slug>_<8 hex>`: how people and models name a session (S-013). */
export function createHandle(agent: string): string {
  const slug = agent.slice(0, 16).replace(/-+$/, "");
  return `${slug === "" ? "a" : slug}_${randomBytes(4).toString("hex")}`;
}
