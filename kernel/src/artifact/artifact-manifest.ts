import { CookieError, type Digest, RetainedStream } from "@cookie-agent/sdk/protocol";
import * as z from "zod";
import type { OpenedArtifact } from "./artifact-store.ts";
import { storedArtifactReference } from "./artifact-uri.ts";

/** Eight streams with all members at their largest stay far below this. */
export const MAX_OUTPUT_MANIFEST_BYTES = 64 * 1024;

const OutputManifest = z.strictObject({
  streams: z
    .array(
      RetainedStream.refine(
        (stream) =>
          stream.name !== null && stream.reference === storedArtifactReference(stream.sha256),
      ),
    )
    .min(1)
    .max(8)
    .refine((streams) => new Set(streams.map(({ name }) => name)).size === streams.length),
});

/** The artifact that ties the named streams of one call together, in declaration order (T 3.2). */
export function encodeManifest(streams: readonly RetainedStream[]): Uint8Array {
  return Buffer.from(JSON.stringify({ streams }));
}

/** The digest of one named stream; `artifact_uri` when this is no manifest or has no such stream (T-139, T-143). */
export async function findManifestStream(artifact: OpenedArtifact, name: string): Promise<Digest> {
  const stream = (await readManifest(artifact)).find((candidate) => candidate.name === name);
  if (stream === undefined) {
    throw new CookieError("artifact_uri", `the artifact has no stream ${name}`);
  }
  return stream.sha256;
}

async function readManifest(artifact: OpenedArtifact): Promise<readonly RetainedStream[]> {
  if (artifact.byteLength > MAX_OUTPUT_MANIFEST_BYTES) throw notAManifest();
  const streams = parseManifest(await artifact.read(0, artifact.byteLength));
  if (streams === undefined) throw notAManifest();
  return streams;
}

/** Undefined for what is no manifest. */
export function parseManifest(bytes: Uint8Array): readonly RetainedStream[] | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    return OutputManifest.safeParse(value).data?.streams;
  } catch {
    return undefined;
  }
}

function notAManifest(): CookieError {
  return new CookieError(
    "artifact_uri",
    "the artifact holds no named streams; read it without a stream suffix",
  );
}
