import { expect, test } from "vitest";
import { runScript } from "../../support/run-cookie.ts";
import { useProject } from "../../support/use-project.ts";

test.for(["bash", "read"])("forty calls of %s in one turn print no warning", async (tool) => {
  const project = await useProject();
  await project.write("a", "x\n");
  const calls = Array.from({ length: 40 }, (_, index) => {
    const args =
      tool === "bash" ? { command: `echo ${index}` } : { filePath: "a", limit: index + 1 };
    return `call ${tool} ${JSON.stringify(args)}`;
  });
  const { exitCode, stdout, stderr } = await runScript(
    project,
    `${calls.join("\n")}\n---\nsay done`,
  );
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: "done\n", stderr: "" });
});
