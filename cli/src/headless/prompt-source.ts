import { createReadStream } from "node:fs";
import { ExitCode, ExitError, usageError } from "../exit-code.ts";

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
    throw usageError(
      given.length === 0
        ? "a prompt is needed: as an argument, with --prompt, or with --prompt-file"
        : "give the prompt once: as an argument, with --prompt, or with --prompt-file",
    );
  }
  const text = await readSource(flags);
  if (text.trim() === "")
    throw setupError("empty_prompt", "the prompt is empty; write what is to be done");
  return text;
}

async function readSource({ positional, prompt, promptFile }: PromptFlags): Promise<string> {
  const inline = positional ?? prompt;
  if (inline !== undefined && inline !== "-") return inline;
  if (promptFile === undefined || promptFile === "-") {
    return readText(process.stdin, "the prompt on stdin");
  }
  return readText(createReadStream(promptFile), `--prompt-file: ${promptFile}`);
}

async function readText(source: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let byteLength = 0;
  try {
    for await (const chunk of source) {
      byteLength += chunk.byteLength;
      if (byteLength > MAX_PROMPT_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? "unreadable";
    throw setupError("prompt_file", `${name} cannot be read (${why})`, error);
  }
  if (byteLength > MAX_PROMPT_BYTES) {
    throw setupError("prompt_too_large", `${name} is larger than ${MAX_PROMPT_BYTES} bytes`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw setupError("prompt_not_text", `${name} is not UTF-8 text`, error);
  }
}

function setupError(code: string, message: string, cause?: unknown): ExitError {
  return new ExitError(ExitCode.setup, code, message, cause);
}
