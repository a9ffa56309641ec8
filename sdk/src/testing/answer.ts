/** How one request ended. */
export type Answer =
  | { readonly kind: "result"; readonly result: Record<string, unknown> }
  | {
      readonly kind: "error";
      /** The number of the wire. */
      readonly number: number;
      /** The stable code in `data.code`; empty where there is none. */
      readonly code: string;
      readonly message: string;
    }
  /** Nothing came: why. */
  | { readonly kind: "none"; readonly why: string };

/** One line about an answer, for a report. */
export function describeAnswer(answer: Answer): string {
  switch (answer.kind) {
    case "result":
      return `the result ${excerpt(JSON.stringify(answer.result))}`;
    case "error":
      return `the error ${answer.number} ${answer.code} (${excerpt(answer.message)})`;
    case "none":
      return answer.why;
    default:
      return answer satisfies never;
  }
}

/** What a plugin did with a request, for the first half of a finding. */
export function tellAnswer(request: string, answer: Answer): string {
  if (answer.kind === "none") return `did not answer ${request}: ${answer.why}`;
  return `answered ${request} with ${describeAnswer(answer)}`;
}

/** One line of at most 200 characters, free of controls. */
export function excerpt(text: string): string {
  const line = text.replace(/\p{Cc}+/gu, " ").trim();
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** What a process said last, without the frames of a stack: the end says more than the beginning. */
export function lastWords(stderr: string): string {
  const told = stderr.split("\n").filter((line) => !/^\s+at |^Node\.js v\d/.test(line));
  const line = told
    .join(" ")
    .replace(/[\p{Cc}\s]+/gu, " ")
    .trim();
  return line.length > 400 ? `…${line.slice(-399)}` : line;
}

/** The answer in a response frame; null for a frame that is none (E-003). */
export function answerOf(frame: Readonly<Record<string, unknown>>): Answer | null {
  const { result, error } = frame;
  if (isRecord(result) && error === undefined) return { kind: "result", result };
  if (!isRecord(error) || result !== undefined) return null;
  const { code, message, data } = error;
  if (typeof code !== "number" || typeof message !== "string") return null;
  const name = isRecord(data) && typeof data["code"] === "string" ? data["code"] : "";
  return { kind: "error", number: code, code: name, message };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
