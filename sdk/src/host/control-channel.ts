import { CookieError } from "../protocol/errors.ts";
import type { Message, Transport } from "../rpc/transport.ts";
import { toWireError } from "../rpc/wire-error.ts";

export interface ControlHandlers {
  attach(request: { plugin: string; entry: string; sha256: string | null }): Promise<void>;
  detach(request: { plugin: string }): Promise<void>;
}

/**
 * Answers the two requests of the control channel until it closes. It checks them by hand: a typed connection would
 * bring the schema library into a process that has to start fast.
 */
export function serveControl(transport: Transport, handlers: ControlHandlers): Promise<void> {
  const { reader, writer, flow } = transport;
  reader.listen((frame) => {
    flow?.dispatched(frame);
    flow?.settled(frame);
    if (!isRequest(frame)) return;
    const { id } = frame;
    void handle(frame, handlers).then(
      () => writer.write({ jsonrpc: "2.0", id, result: {} } as Message),
      (error: unknown) =>
        writer.write({ jsonrpc: "2.0", id, error: toWireError(error) } as Message),
    );
  });
  return new Promise((resolve) => {
    reader.onClose(() => resolve());
  });
}

interface Request extends Message {
  readonly id: string | number;
  readonly method: string;
  readonly params?: unknown;
}

async function handle(request: Request, handlers: ControlHandlers): Promise<void> {
  const params = isRecord(request.params) ? request.params : {};
  switch (request.method) {
    case "process/attach": {
      const sha256 = params["sha256"] === null ? null : text(params, "sha256");
      const plugin = text(params, "plugin");
      return handlers.attach({ plugin, entry: text(params, "entry"), sha256 });
    }
    case "process/detach":
      return handlers.detach({ plugin: text(params, "plugin") });
    default:
      throw new CookieError("method_not_found", "the host knows process/attach and process/detach");
  }
}

function text(params: Record<string, unknown>, field: string): string {
  const value = params[field];
  if (typeof value === "string") return value;
  throw new CookieError("invalid_params", `${field}: expected a string`, { data: { field } });
}

function isRequest(frame: Message): frame is Request {
  return (
    "method" in frame &&
    typeof frame.method === "string" &&
    "id" in frame &&
    (typeof frame.id === "string" || typeof frame.id === "number")
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
