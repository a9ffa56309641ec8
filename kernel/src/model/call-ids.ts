import { sha256Hex } from "../support/digest.ts";

const MAX_ID_BYTES = 512;

/** Ids of tool calls, unique in a turn and against those the run has used (B118). */
export class CallIds {
  readonly #used: ReadonlySet<string>;
  readonly #assigned = new Set<string>();

  constructor(used: ReadonlySet<string>) {
    this.#used = used;
  }

  /** The model's own id when it is free, else the same id with a number behind it. */
  assign(wireId: string): string {
    const base = wireId.trim() === "" ? "call" : wireId;
    const short = Buffer.byteLength(base) <= MAX_ID_BYTES - 16 ? base : `call_${digest(base)}`;
    let id = short;
    for (let number = 2; this.#used.has(id) || this.#assigned.has(id); number += 1) {
      id = `${short}_${number}`;
    }
    this.#assigned.add(id);
    return id;
  }
}

/** An id that every wire accepts; one that already is stays as it is. */
export function portableCallId(id: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? id : `call_${digest(id)}`;
}

/** A tool name that every wire accepts, for names a model made up. */
export function portableToolName(name: string): string {
  return /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? name
    : name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "unnamed";
}

function digest(text: string): string {
  return sha256Hex(text).slice(0, 32);
}
