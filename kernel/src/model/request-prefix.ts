import { randomUUID } from "node:crypto";
import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { CookieError } from "@cookie-agent/sdk/protocol";

/** A body in the pieces that it is sent in. */
export type BodyPieces = readonly (string | Uint8Array)[];

/** A request that is asked of the package without the conversation that went out before. */
export interface CutRequest {
  readonly prompt: LanguageModelV3Prompt;
  /** The whole body, from what the package made of the cut prompt. */
  complete(body: string): BodyPieces;
}

/** A conversation that went out, and its messages as JSON, joined by commas. */
interface SentMessages {
  readonly prompt: LanguageModelV3Prompt;
  /** Never written to again; what lies behind it in memory is free. */
  readonly bytes: Buffer;
}

const NOTHING_SENT: SentMessages = { prompt: [], bytes: Buffer.alloc(0) };

/**
 * The conversation as it went out last. A package maps and writes all of it for each request, which soon costs more
 * than everything else in a turn; here only the messages after those of the last request are given to it. Only for wires
 * that map each message on its own, whatever stands beside it.
 */
export class RequestPrefix {
  #last = NOTHING_SENT;

  cut(prompt: LanguageModelV3Prompt): CutRequest {
    const sent = isBeginning(this.#last.prompt, prompt) ? this.#last : NOTHING_SENT;
    const mark = randomUUID();
    const marker: LanguageModelV3Message = {
      role: "user",
      content: [{ type: "text", text: mark }],
    };
    return {
      prompt: [marker, ...prompt.slice(sent.prompt.length), marker],
      complete: (body) => {
        const { head, added, tail } = splitAtMarks(body, mark);
        const bytes = this.#append(sent, added);
        this.#last = { prompt, bytes };
        return [head, bytes, tail];
      },
    };
  }

  #append(sent: SentMessages, added: string): Buffer {
    const { bytes } = sent;
    if (added === "") return bytes;
    const text = bytes.byteLength === 0 ? added : `,${added}`;
    const byteLength = bytes.byteLength + Buffer.byteLength(text);
    const room = bytes.buffer.byteLength - bytes.byteOffset;
    // Of two requests that go on from the same one, only the first finds the memory behind it free.
    const free = sent === this.#last && byteLength <= room;
    const whole = free
      ? Buffer.from(bytes.buffer, bytes.byteOffset, byteLength)
      : Buffer.allocUnsafeSlow(byteLength * 2).subarray(0, byteLength);
    if (!free) bytes.copy(whole);
    whole.write(text, bytes.byteLength);
    return whole;
  }
}

function isBeginning(start: LanguageModelV3Prompt, prompt: LanguageModelV3Prompt): boolean {
  return (
    start.length <= prompt.length && start.every((message, index) => message === prompt[index])
  );
}

/** What stands before, between and behind the two markers. */
function splitAtMarks(body: string, mark: string): { head: string; added: string; tail: string } {
  const marker = JSON.stringify({ role: "user", content: mark });
  const start = body.indexOf(marker);
  const end = body.lastIndexOf(marker);
  if (start < 0 || end === start) {
    throw new CookieError("engine", "the provider package writes messages in an unknown form");
  }
  return {
    head: body.slice(0, start),
    // A comma on each side of it, or one alone between the markers.
    added: body.slice(start + marker.length + 1, end - 1),
    tail: body.slice(end + marker.length),
  };
}
