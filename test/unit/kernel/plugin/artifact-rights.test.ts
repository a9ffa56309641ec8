import { Digest, type TrustTier } from "@cookie-agent/sdk/protocol";
import { expect, test } from "vitest";
import {
  requireAttachable,
  requireReadable,
} from "../../../../kernel/src/plugin/artifact-rights.ts";
import { ContextGrants } from "../../../../kernel/src/plugin/context-grants.ts";
import { SESSION } from "./open-host.ts";

const ONE = Digest.parse("1".repeat(64));
const OTHER = Digest.parse("2".repeat(64));
const uriOf = (digest: string) => `artifact://${digest}`;

/** What a call that wrote `ONE` itself, and was approved for `OTHER`, may read and attach. */
function verdicts(uri: string, tier: TrustTier) {
  const context = {
    plugin: "sample",
    sessionId: SESSION,
    rootSessionId: SESSION,
    runId: null,
    toolCallId: null,
    written: new Set([ONE]),
    approvedLabels: [uriOf(OTHER), `${uriOf(OTHER)}/stdout`],
  };
  const grants = new ContextGrants();
  const id = grants.grant("call", context);
  const codeOf = (check: () => void) => {
    try {
      check();
      return "granted";
    } catch (error) {
      return (error as { code: unknown }).code;
    }
  };
  return {
    read: codeOf(() => requireReadable(context, id, uri, { tier, grants })),
    attach: codeOf(() => requireAttachable(context, uri, tier)),
  };
}

test.for([
  ["what it wrote", uriOf(ONE), "untrusted", "granted", "granted"],
  ["what it was approved for", uriOf(OTHER), "trusted", "granted", "granted"],
  [
    "that where it is untrusted",
    uriOf(OTHER),
    "untrusted",
    "permission_denied",
    "permission_denied",
  ],
  ["anything else", uriOf("3".repeat(64)), "trusted", "permission_denied", "permission_denied"],
  [
    "a stream of what it wrote",
    `${uriOf(ONE)}/stdout`,
    "trusted",
    "permission_denied",
    "artifact_uri",
  ],
  ["a stream that was approved", `${uriOf(OTHER)}/stdout`, "trusted", "granted", "artifact_uri"],
] as const)("[E-110] [E-119] a call reads and attaches %s", ([, uri, tier, read, attach]) => {
  expect(verdicts(uri, tier)).toEqual({ read, attach });
});
