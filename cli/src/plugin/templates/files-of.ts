import type { Language } from "./language.ts";
import { pythonTemplate } from "./python-template.ts";
import { shellTemplate } from "./shell-template.ts";
import type { Template } from "./template-file.ts";
import { typescriptTemplate } from "./typescript-template.ts";

export function filesOf(language: Language, name: string): Template {
  switch (language) {
    case "typescript":
      return typescriptTemplate(name);
    case "python":
      return pythonTemplate(name);
    case "shell":
      return shellTemplate(name);
    default:
      return language satisfies never;
  }
}
