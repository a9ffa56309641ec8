import type { Method, ParamsOf, ResultInput } from "@cookie-agent/sdk/protocol";

/** Adds one wire method whose body is one call below. */
export type Route = <M extends Method>(
  method: M,
  handler: (params: ParamsOf<M>, signal: AbortSignal) => Promise<ResultInput<M>> | ResultInput<M>,
  options?: RouteOptions,
) => void;

export interface RouteOptions {
  /** Its answers may be large: few are made at once, and none for a client that has yet to read others (D-082). */
  readonly bulky?: boolean;
  /** Not carried out without an id (D-014). */
  readonly needsId?: boolean;
}
