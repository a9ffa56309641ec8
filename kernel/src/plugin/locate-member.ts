/**
 * The line, from 1, on which a member of a JSON text begins; the deepest part of `path` that is there counts. An
 * element of an array is named by its index, or by the value of its own member `name`.
 */
export function locateMember(text: string, path: readonly string[]): number {
  const scanner = new Scanner(text);
  scanner.value(path);
  return text.slice(0, scanner.found).split("\n").length;
}

/** Walks text that parses; goes down one path and over everything else. */
class Scanner {
  readonly #text: string;
  #at = 0;
  /** Where the deepest part of the path was met. */
  found = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads one value; `path` is what is looked for in it, null outside. */
  value(path: readonly string[] | null): void {
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") this.#object(path);
    else if (first === "[") this.#array(path);
    else if (first === '"') this.#string();
    else
      while (this.#at < this.#text.length && !/[\s,\]}]/.test(this.#text[this.#at] ?? ""))
        this.#at += 1;
  }

  #object(path: readonly string[] | null): void {
    this.#at += 1;
    for (this.#space(); this.#more("}"); this.#next()) {
      const start = this.#at;
      const key = this.#string();
      this.#space();
      this.#at += 1;
      const wanted = path !== null && path.length > 0 && key === path[0];
      if (wanted) this.found = start;
      this.value(wanted ? path.slice(1) : null);
    }
    this.#at += 1;
  }

  #array(path: readonly string[] | null): void {
    this.#at += 1;
    let index = 0;
    for (this.#space(); this.#more("]"); this.#next()) {
      const start = this.#at;
      const wanted =
        path !== null &&
        path.length > 0 &&
        (path[0] === String(index) || path[0] === this.#nameAt(start));
      if (wanted) this.found = start;
      this.value(wanted ? path.slice(1) : null);
      index += 1;
    }
    this.#at += 1;
  }

  #nameAt(start: number): string | undefined {
    const end = new Scanner(this.#text);
    end.#at = start;
    end.value(null);
    const value: unknown = JSON.parse(this.#text.slice(start, end.#at));
    const name: unknown =
      typeof value === "object" && value !== null && "name" in value ? value.name : undefined;
    return typeof name === "string" ? name : undefined;
  }

  #string(): string {
    const start = this.#at;
    for (
      this.#at += 1;
      this.#at < this.#text.length && this.#text[this.#at] !== '"';
      this.#at += 1
    ) {
      if (this.#text[this.#at] === "\\") this.#at += 1;
    }
    this.#at += 1;
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #more(close: string): boolean {
    return this.#at < this.#text.length && this.#text[this.#at] !== close;
  }

  #next(): void {
    this.#space();
    if (this.#text[this.#at] === ",") this.#at += 1;
    this.#space();
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }
}
