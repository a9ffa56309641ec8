import { readFile } from "node:fs/promises";
import { ExitCode, ExitError } from "../exit-code.ts";

/** A prompt from a file or stdin is read up to this many bytes. */
const MAX_PROMPT_BYTES = 8 * 1024 * 1024;

export interface PromptFlags {
  readonly positional?: string | undefined;
  readonly prompt?: string | undefined;
  readonly promptFile?: string | undefined;
}

/**
 * The prompt from its one source; `-` reads stdin to its end, and nothing else ever touches stdin (B139). An
 * unreadable or empty prompt is a failure of set-up (C 7.3).
 */
export async function readPrompt(flags: PromptFlags): Promise<string> {
  const given = [flags.positional, flags.prompt, flags.promptFile].filter((v) => v !== undefined);
  if (given.length !== 1) {
    throw new ExitError(
      ExitCode.usage,
      "usage",
      given.length === 0
        ? "a prompt is needed: as an argument, with --prompt, or with --prompt-file"
        : "give the prompt once: as an argument, with --prompt, or with --prompt-file",
    );
  }
  const text = await readSource(flags);
  if (text.trim() === "")
    throw new ExitError(ExitCode.setup, "empty_prompt", "the prompt is empty");
  return text;
}

async function readSource({ positional, prompt, promptFile }: PromptFlags): Promise<string> {
  const inline = positional ?? prompt;
  if (inline !== undefined && inline !== "-") return inline;
  if (inline === "-" || promptFile === "-") return readStdin();
  try {
    return await readFile(promptFile ?? "", "utf8");
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw new ExitError(
      ExitCode.setup,
      "prompt_file",
      `the prompt file ${promptFile} cannot be read (${why})`,
      error,
    );
  }
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk as Uint8Array);
    length += bytes.byteLength;
    if (length > MAX_PROMPT_BYTES) {
      throw new ExitError(
        ExitCode.setup,
        "prompt_too_large",
        `the prompt on stdin is larger than ${MAX_PROMPT_BYTES} bytes`,
      );
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
