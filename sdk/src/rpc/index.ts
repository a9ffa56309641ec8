export { Connection, type ConnectionOptions, type RequestOptions } from "./connection.ts";
export type { BadLine } from "./line-reader.ts";
export {
  createLineTransport,
  type LineTransport,
  type LineTransportOptions,
} from "./line-transport.ts";
export { createMemoryPair } from "./memory-transport.ts";
export { cutText } from "./safe-message.ts";
export { SecretText } from "./secret-text.ts";
export type { CloseReason, FrameFlow, Transport } from "./transport.ts";
export { fromWireError, toWireError, type WireError } from "./wire-error.ts";
