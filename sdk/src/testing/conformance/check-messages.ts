import { tellAnswer } from "../answer.ts";
import type { Check } from "./check.ts";
import { fail, failOn } from "./verdict.ts";

export const checkMessages: Check = {
  id: "C-02",
  title: "messages: id 0, string ids, absent params, unknown methods and members",
  ids: ["E-003", "E-004", "E-005", "E-006", "E-007"],
  async run(bench) {
    const workspace = await bench.folder();
    const { peer } = await bench.start(workspace, { id: 0 });
    const { driver } = peer;
    const { answerMs } = bench.limits;
    for (const id of ["text-1", "0", 0]) {
      const answer = await driver.request("plugin/ping", {}, answerMs, id);
      if (answer.kind === "none") {
        fail(
          `gave no answer with the id ${JSON.stringify(id)} to plugin/ping: ${answer.why}`,
          "give back every id as it came: test for the presence of id, not for truth",
        );
      }
    }
    const bare = await driver.request("plugin/ping", undefined, answerMs);
    if (bare.kind === "none") {
      fail(`did not answer a request without params: ${bare.why}`, "read absent params as {}");
    }
    const extended = { later: true, _meta: { note: "ignore" } };
    const unknownMember = await driver.request("plugin/ping", extended, answerMs);
    if (unknownMember.kind === "none" || unknownMember.kind !== bare.kind) {
      fail(tellAnswer("unknown members", unknownMember), "ignore members that it does not know");
    }
    const unknown = await driver.request("plugin/later", { a: 1 }, answerMs);
    if (unknown.kind !== "error" || unknown.number !== -32601) {
      fail(
        tellAnswer("the unknown request plugin/later", unknown),
        "answer it with the error -32601",
      );
    }
    driver.notify("plugin/later_news", { a: 1 });
    await bench.barrier(peer, "an unknown notification");
    for (const { method } of driver.frames) {
      if (!method.startsWith("host/") && method !== "plugin/emit") {
        fail(`sent ${method.slice(0, 100)}`, "send host/… methods and plugin/emit only");
      }
    }
    failOn(driver.problems);
  },
};
