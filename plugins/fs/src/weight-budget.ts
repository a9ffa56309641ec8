import { ToolError } from "@cookie-agent/sdk/plugin";

/** Path components that all live preparations of this process may hold together (T-017). */
export const MAX_WEIGHT = 16_384;
const BASE_WEIGHT = 4;

/** Bounds what prepared calls hold; every reservation is given back when its token is used or discarded. */
export class WeightBudget {
  #used = 0;

  get used(): number {
    return this.#used;
  }

  /** Reserves for one target and returns the function that gives it back, which may be called again. */
  reserve(path: string): () => void {
    const weight = path.split("/").length - 1 + BASE_WEIGHT;
    if (this.#used + weight > MAX_WEIGHT) {
      throw new ToolError(
        "resource_limit",
        "too many prepared file operations are waiting; let some of them end and repeat the call",
      );
    }
    this.#used += weight;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#used -= weight;
    };
  }
}
