import type { Connection } from "../rpc/connection.ts";
import type { ServiceClient } from "./service-client.ts";

/** What most requests never use is loaded when it is used. */
export function createServiceClient(
  connection: Connection,
  contextId: string,
  signal: AbortSignal,
  scratch: string,
): ServiceClient {
  const services = async (): Promise<ServiceClient> => {
    const { openServices } = await import("./service-requests.ts");
    return openServices(connection, contextId, signal, scratch);
  };
  return {
    readArtifactBytes: async (range) => (await services()).readArtifactBytes(range),
    writeArtifactFile: async (name) => (await services()).writeArtifactFile(name),
    attach: async (bytes, file) => (await services()).attach(bytes, file),
    sessionInfo: async () => (await services()).sessionInfo(),
    askPermission: async (question) => (await services()).askPermission(question),
    sniffMedia: async (content) => (await services()).sniffMedia(content),
    deliverMedia: async (content) => (await services()).deliverMedia(content),
    delegation: {
      start: async (child) => (await services()).delegation.start(child),
      result: async (page) => (await services()).delegation.result(page),
      cancel: async (child) => (await services()).delegation.cancel(child),
      targets: async () => (await services()).delegation.targets(),
    },
    sendMessage: async (message) => (await services()).sendMessage(message),
    goals: {
      get: async () => (await services()).goals.get(),
      update: async (items) => (await services()).goals.update(items),
    },
    skills: {
      list: async () => (await services()).skills.list(),
      get: async (name, args) => (await services()).skills.get(name, args),
      commit: async (skill) => (await services()).skills.commit(skill),
    },
  };
}
