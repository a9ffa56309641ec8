import { isDeepStrictEqual } from "node:util";
import { PluginInitialize } from "../../protocol/plugin-methods.ts";
import { PLUGIN_PROTOCOL_VERSION } from "../../protocol/version.ts";
import { describeAnswer } from "../answer.ts";
import type { Bench } from "./bench.ts";
import type { Check } from "./check.ts";
import { requireShape } from "./require-shape.ts";
import { fail } from "./verdict.ts";

const FOREIGN_VERSION = "99.0.0";

export const checkIntroduction: Check = {
  id: "C-04",
  title: "introduction: version, name, capabilities within the manifest",
  ids: ["E-021", "E-024", "E-035"],
  async run(bench) {
    const { introduction } = await bench.start(await bench.folder());
    // Declarations are judged by C-05.
    const { tools: _, ...rest } = introduction;
    requireShape(PluginInitialize.result, rest, {
      did: "answered plugin/initialize",
      must: "answer protocol_version, name, version, and at most capabilities, tools and manifest_digest",
    });
    judgeVersions(bench);
    judgeIdentity(bench, introduction);
    judgeCapabilities(bench, introduction["capabilities"]);
    await judgeForeignVersion(bench);
  },
};

function judgeVersions(bench: Bench): void {
  const versions = bench.options.subject.manifest?.protocol;
  if (versions === undefined || versions.includes(PLUGIN_PROTOCOL_VERSION)) return;
  fail(
    `lists the protocol ${versions.join(", ")} in its manifest`,
    `list ${PLUGIN_PROTOCOL_VERSION} there, else it is never started`,
  );
}

function judgeIdentity(bench: Bench, introduction: Record<string, unknown>): void {
  const { protocol_version: version, name } = introduction;
  if (version !== PLUGIN_PROTOCOL_VERSION) {
    fail(
      `answered with protocol ${JSON.stringify(version)}`,
      `speak ${PLUGIN_PROTOCOL_VERSION}, the version it was asked for`,
    );
  }
  if (name !== bench.options.name) {
    fail(
      `calls itself ${JSON.stringify(name)}`,
      `use the name ${bench.options.name} of its manifest and entry`,
    );
  }
}

function judgeCapabilities(bench: Bench, claimed: unknown): void {
  const { manifest } = bench.options.subject;
  if (manifest === null) {
    if (typeof claimed === "object" && claimed !== null) return;
    fail("has no manifest and named no capabilities", "answer capabilities and tools");
  }
  const bound: Record<string, unknown> = {
    ...manifest.capabilities,
    tools: (manifest.tools ?? []).length > 0,
  };
  for (const [capability, value] of Object.entries(claimed ?? {})) {
    if (!isWithin(value, bound[capability])) {
      fail(
        `claims the capability ${capability} beyond its manifest`,
        "claim a subset: generate the manifest anew, or leave capabilities out of the answer",
      );
    }
  }
}

function isWithin(value: unknown, bound: unknown): boolean {
  if (value === undefined || value === false || bound === true) return true;
  if (Array.isArray(value)) {
    return value.length === 0 || (Array.isArray(bound) && value.every((v) => bound.includes(v)));
  }
  return isDeepStrictEqual(value, bound);
}

async function judgeForeignVersion(bench: Bench): Promise<void> {
  const workspace = await bench.folder();
  const peer = await bench.open(workspace);
  const answer = await bench.introduce(peer, workspace, { protocolVersion: FOREIGN_VERSION });
  if (answer.kind === "error") return;
  if (answer.kind === "none") {
    fail(
      `did not answer plugin/initialize with the protocol ${FOREIGN_VERSION}: ${answer.why}`,
      "fail it with version_mismatch, or answer the version that it speaks",
    );
  }
  if (answer.result["protocol_version"] === FOREIGN_VERSION) {
    fail(
      `claims to speak the protocol ${FOREIGN_VERSION}, only because it was asked for: ${describeAnswer(answer)}`,
      "fail the request with version_mismatch, or answer the version that it speaks",
    );
  }
}
