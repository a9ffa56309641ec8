export interface TemplateFile {
  readonly path: string;
  readonly text: string;
  readonly executable?: boolean;
}

export interface Template {
  readonly files: readonly TemplateFile[];
  /** What to type in the folder then. */
  readonly next: readonly string[];
}

/** The manifest of a program that is no JavaScript; the tool has the plugin's name. */
export function programManifest(name: string, command: string, maxInFlight?: number): TemplateFile {
  const manifest = {
    manifest: 1,
    name,
    version: "0.1.0",
    protocol: ["0.1.0"],
    runtime: { kind: "exec", command },
    ...(maxInFlight === undefined ? {} : { max_in_flight: maxInFlight }),
    capabilities: { tools: true },
    tools: [
      {
        name,
        description: "Counts the words of a text.",
        parameters: {
          type: "object",
          properties: { text: { type: "string", description: "The text" } },
          required: ["text"],
          additionalProperties: false,
        },
        permission_name: name,
      },
    ],
  };
  return { path: "cookie-plugin.json", text: json(manifest) };
}

export function samples(name: string, more: object = {}): TemplateFile {
  const calls = [{ tool: name, arguments: { text: "one two three" } }];
  return { path: "conformance.json", text: json({ ...more, calls }) };
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

export function tryCommands(name: string): string[] {
  return [
    "cookie plugin check",
    "cookie plugin test",
    `cookie plugin call ${name} ${name} '{"text":"one two three"}' --path . --allowed-tools plugin:${name}`,
  ];
}
