import type { Method, ParamsOf, ResultInput } from "@cookie-agent/sdk/protocol";

/** Adds one wire method whose body is one call below. */
export type Route = <M extends Method>(
  method: M,
  handler: (params: ParamsOf<M>, signal: AbortSignal) => Promise<ResultInput<M>> | ResultInput<M>,
) => void;
