/** An authored document of an internal agent; the model server knows its requests by the first line of `prompt`. */
export function internalDocument(
  options: {
    readonly models?: readonly string[];
    readonly limits?: Readonly<Record<string, number>>;
    readonly prompt?: string;
    readonly enabled?: boolean;
  } = {},
): string {
  const {
    models = ["${parent_model}"],
    limits = {},
    prompt = "You decide whether one tool call of a coding agent may run, in words of our own.",
    enabled = true,
  } = options;
  const entries = models.map((model) => `  - model: ${model}\n`).join("");
  return `---
description: An internal agent under test
mode: internal
enabled: ${String(enabled)}
models:
${entries}limits: ${JSON.stringify(limits)}
---
${prompt}
`;
}
