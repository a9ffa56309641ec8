import { type ContextId, CookieError, type TrustTier } from "@cookie-agent/sdk/protocol";
import { parseArtifactUri, publicArtifactUri } from "../artifact/artifact-uri.ts";
import type { ContextGrants } from "./context-grants.ts";
import type { CallContext } from "./host-services.ts";

/**
 * Throws `permission_denied` unless the plugin may have the artifact (E-119): its own request wrote it or, above
 * untrusted, it was approved for the call or the rules in force now allow reading it.
 */
export function requireReadable(
  context: CallContext,
  contextId: ContextId,
  uri: string,
  options: { readonly tier: TrustTier; readonly grants: ContextGrants },
): void {
  const { digest, stream } = parseArtifactUri(uri);
  // What a plugin wrote may call itself a list of streams, and name any artifact among them.
  if (stream === null && options.grants.hasWritten(contextId, digest)) return;
  if (isReadable(context, uri, options.tier)) return;
  throw notReadable();
}

/** The same after the request's end, for what its answer attaches; such a URI names no stream. */
export function requireAttachable(context: CallContext, uri: string, tier: TrustTier): void {
  const { digest, stream } = parseArtifactUri(uri);
  if (stream !== null) {
    throw new CookieError("artifact_uri", "an attachment is a whole artifact, not a stream of one");
  }
  if (context.written?.has(digest) === true || isReadable(context, uri, tier)) return;
  throw notReadable();
}

function isReadable({ approvedLabels, session }: CallContext, uri: string, tier: TrustTier) {
  if (tier === "untrusted") return false;
  if (approvedLabels?.includes(uri) === true) return true;
  return session?.mayRead(publicArtifactUri(parseArtifactUri(uri).digest)) === true;
}

function notReadable(): CookieError {
  return new CookieError(
    "permission_denied",
    "the artifact is not among what this call may read; only what it wrote itself, what was approved for it, or what the rules allow to read",
  );
}
