import { isCookieError } from "@cookie-agent/sdk/protocol";
import { describe, expect, test } from "vitest";
import {
  parseArtifactUri,
  publicArtifactUri,
} from "../../../../kernel/src/artifact/artifact-uri.ts";

const HEX = "ab".repeat(32);

describe("artifact URIs", () => {
  test.for([null, "stdout", "a.b-c_D", "x".repeat(64)])(
    "the public form with suffix %s is read back as written",
    (stream) => {
      expect(parseArtifactUri(publicArtifactUri(HEX, stream))).toEqual({ digest: HEX, stream });
    },
  );

  test.for([
    HEX,
    `artifact://sha256/${HEX}`,
    `artifact://${HEX.toUpperCase()}`,
    `artifact://${HEX.slice(1)}`,
    `artifact://${HEX}0`,
    `artifact://${HEX}/`,
    `artifact://${HEX}/stdout/x`,
    `artifact://${HEX}/.`,
    `artifact://${HEX}/..`,
    `artifact://${HEX}/a%2Fb`,
    `artifact://${HEX}\\stdout`,
    `artifact://${HEX}?x=1`,
    `artifact://${HEX}#x`,
    `artifact://${HEX}/stdout?x`,
    `artifact://${HEX}/${"x".repeat(65)}`,
    `artifact://${HEX}\n`,
    `artifact://${HEX}/stdout\n`,
    "artifact://",
    "",
  ])("[T-140] [T-031] [S-108] %j is artifact_uri", (uri) => {
    expect(() => parseArtifactUri(uri)).toThrow(
      expect.toSatisfy((error: unknown) => isCookieError(error, "artifact_uri")),
    );
  });
});
