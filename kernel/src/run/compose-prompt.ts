import type { ContextDocument } from "../config/agents-md.ts";
import type { PluginFacts } from "../plugin/plugin-facts.ts";
import { expandTemplates, type TemplateLines } from "./expand-templates.ts";

export interface PromptFacts {
  readonly agentPrompt: string;
  readonly workspaceRoot: string;
  readonly plugins: readonly Pick<PluginFacts, "name" | "instructions" | "tier">[];
  readonly templates: TemplateLines;
  readonly today: string;
}

/** The system prompt that a run is admitted with and keeps: agent, surroundings, tool sections (T-002). */
export function composePrompt(facts: PromptFacts): string {
  const sections = [
    facts.agentPrompt.trimEnd(),
    `Working directory: ${facts.workspaceRoot}\nPlatform: ${process.platform}\nDate: ${facts.today}`,
  ];
  for (const { name, instructions, tier } of facts.plugins) {
    const section = instructions?.trim() ?? "";
    // Of others the braces are text.
    const { text, isEmpty } =
      tier === "first_party"
        ? expandTemplates(section, facts.templates)
        : { text: section, isEmpty: false };
    if (text && !isEmpty) {
      sections.push(`<tool_instructions provider="${name}">\n${text}\n</tool_instructions>`);
    }
  }
  return sections.join("\n\n");
}

/** The prompt with the AGENTS.md documents of user and workspace behind it (S 5.12). */
export function withContextDocuments(
  prompt: string,
  documents: readonly ContextDocument[],
): string {
  const sections = documents.map(({ source, content, truncated, original_bytes }) => {
    const note = truncated ? `\n[cut: the file has ${original_bytes} bytes]` : "";
    return `<agents_md source="${source}">\n${content.trimEnd()}${note}\n</agents_md>`;
  });
  return [prompt, ...sections].join("\n\n");
}
