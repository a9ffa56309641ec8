import { PluginBus } from "../../../../kernel/src/event/plugin-bus.ts";
import type { EventServices } from "../../../../kernel/src/plugin/event-services.ts";

/** For hosts whose plugins hear and publish nothing. */
export function noEvents(): EventServices {
  return {
    bus: new PluginBus(),
    append: () => Promise.reject(new Error("nothing is published here")),
    note: () => undefined,
  };
}
