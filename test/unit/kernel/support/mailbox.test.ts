import { describe, expect, test } from "vitest";
import { createDeferred } from "../../../../kernel/src/support/deferred.ts";
import { Mailbox } from "../../../../kernel/src/support/mailbox.ts";

describe("a mailbox", () => {
  test("[S-006] serves its commands one at a time, in the order they came", async () => {
    const mailbox = new Mailbox();
    const steps: string[] = [];
    const slow = createDeferred();
    const first = mailbox.run(async () => {
      steps.push("first begins");
      await slow.promise;
      steps.push("first ends");
    });
    const second = mailbox.run(() => steps.push("second"));
    await new Promise(setImmediate);
    expect(steps).toEqual(["first begins"]);
    slow.resolve();
    await Promise.all([first, second]);
    expect(steps).toEqual(["first begins", "first ends", "second"]);
  });

  test("a command that fails does not stop the next one", async () => {
    const mailbox = new Mailbox();
    const failing = mailbox.run(() => Promise.reject(new Error("no")));
    const next = mailbox.run(() => "served");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("served");
  });

  test("[S-006] refuses the command beyond its capacity as busy", async () => {
    const mailbox = new Mailbox();
    const gate = createDeferred();
    const commands = Array.from({ length: 256 }, () => mailbox.run(() => gate.promise));
    await expect(mailbox.run(() => undefined)).rejects.toMatchObject({ code: "busy" });
    gate.resolve();
    await Promise.all(commands);
  });

  test("once closed it finishes what it took and takes nothing more", async () => {
    const mailbox = new Mailbox();
    const taken = mailbox.run(() => "taken");
    const closing = mailbox.close();
    await expect(mailbox.run(() => undefined)).rejects.toMatchObject({ code: "shutting_down" });
    await closing;
    expect(await taken).toBe("taken");
  });
});
