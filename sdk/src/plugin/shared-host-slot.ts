import type { Transport } from "../rpc/transport.ts";

/**
 * Where a shared host leaves the channel of the entry it is loading. A registered symbol, because the entry brings its
 * own copy of this module (E-014).
 */
const SLOT = Symbol.for("cookie-agent.plugin-channel");

/** Stands in the host for as long as it lives; every entry takes one lease. */
export interface SharedHostSlot {
  /** Hands over the channel of the entry that is being loaded; throws when none is. */
  take(): SharedHostLease;
}

export interface SharedHostLease {
  readonly transport: Transport;
  /** The plugin has stopped. */
  release(): void;
}

export function findSharedHostSlot(): SharedHostSlot | undefined {
  const slot: unknown = Reflect.get(globalThis, SLOT);
  return isSlot(slot) ? slot : undefined;
}

export function setSharedHostSlot(slot: SharedHostSlot): void {
  Reflect.set(globalThis, SLOT, slot);
}

function isSlot(value: unknown): value is SharedHostSlot {
  return typeof value === "object" && value !== null && "take" in value;
}
