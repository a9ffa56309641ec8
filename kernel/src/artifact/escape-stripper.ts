type State = "text" | "escape" | "control_sequence" | "string" | "string_escape";

const ESC = "\u001b";
const BEL = "\u0007";

/** Removes terminal escape sequences from text that arrives in pieces; its state is one word, whatever comes. */
export class EscapeStripper {
  #state: State = "text";

  strip(piece: string): string {
    let kept = "";
    let at = 0;
    while (at < piece.length) {
      if (this.#state === "text") {
        const start = piece.indexOf(ESC, at);
        if (start < 0) return at === 0 ? piece : kept + piece.slice(at);
        kept += piece.slice(at, start);
        this.#state = "escape";
        at = start + 1;
        continue;
      }
      const char = piece.charAt(at);
      this.#state = char === "\r" ? "text" : advance(this.#state, char);
      // A character that no sequence can hold ended it and is text itself.
      if (this.#state === "text" && !isSequenceEnd(char)) kept += char;
      at += 1;
    }
    return kept;
  }

  /** A newline ends every sequence, so that one left open cannot swallow the rest of the output. */
  reset(): void {
    this.#state = "text";
  }
}

function advance(state: State, char: string): State {
  switch (state) {
    case "escape":
      if (char === ESC) return "escape";
      if (char === "[") return "control_sequence";
      if ("]PX^_".includes(char)) return "string";
      return char >= " " && char <= "/" ? "escape" : "text";
    case "control_sequence":
      if (char === ESC) return "escape";
      return char >= " " && char <= "?" ? "control_sequence" : "text";
    case "string":
      if (char === BEL) return "text";
      return char === ESC ? "string_escape" : "string";
    case "string_escape":
      return char === "\\" ? "text" : advance("escape", char);
    case "text":
      return "text";
  }
}

function isSequenceEnd(char: string): boolean {
  return char === BEL || (char >= "0" && char <= "~");
}
