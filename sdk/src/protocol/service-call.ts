import * as z from "zod";
import { request, toPlugin } from "./method.ts";
import { boundedText, ContextId, JsonObject } from "./scalars.ts";

/** The answer of a service: any JSON object. Whoever asked knows its form. */
const ServiceResult = z.record(z.string(), z.unknown());

/** A request of a client's that the plugin which provides the service answers (E-122). Params may hold secrets. */
export const ServiceCall = request(
  "plugin/service/call",
  () =>
    toPlugin({
      /** One of the manifest's `provides`. */
      service: boundedText(1, 64),
      /** As the service names it. */
      method: boundedText(1, 128),
      /** As the client sent them. */
      params: JsonObject,
      /** There when the params name a session; lasts until the answer. */
      context_id: ContextId.optional(),
    }),
  () => ServiceResult,
);
