import { ANY_ONE, ANY_RUN, type CompiledPattern } from "./match-pattern.ts";

/** A pattern as a machine that takes a text one code point at a time; its states are made as they are met. */
export class PatternAutomaton {
  /** The state from which nothing matches any more; the same in all of them. */
  static readonly dead = 0;

  readonly #tokens: CompiledPattern;
  readonly #fold: ((point: number) => number) | undefined;
  readonly #ends: ReadonlySet<number>;
  readonly #states: (readonly number[])[] = [[]];
  readonly #known = new Map<string, number>([["", PatternAutomaton.dead]]);
  readonly #steps: Map<number, number>[] = [new Map<number, number>()];
  readonly start: number;

  /** @param fold Says which code points count as one. */
  constructor(tokens: CompiledPattern, fold?: (point: number) => number) {
    this.#tokens = tokens;
    this.#fold = fold;
    const end = tokens.length;
    const optionalSuffix = tokens[end - 2] === 0x20 && tokens[end - 1] === ANY_RUN;
    this.#ends = new Set(optionalSuffix ? [end, end - 2] : [end]);
    this.start = this.#stateOf(new Set([0]));
  }

  step(state: number, point: number): number {
    const steps = this.#steps[state];
    if (state === PatternAutomaton.dead || steps === undefined) return PatternAutomaton.dead;
    let reached = steps.get(point);
    if (reached === undefined) {
      reached = this.#stateOf(this.#positionsAfter(state, point));
      steps.set(point, reached);
    }
    return reached;
  }

  follow(state: number, text: readonly number[]): number {
    return text.reduce((at, point) => this.step(at, point), state);
  }

  accepts(state: number): boolean {
    return this.#states[state]?.some((position) => this.#ends.has(position)) === true;
  }

  #positionsAfter(state: number, met: number): Set<number> {
    const point = this.#fold?.(met) ?? met;
    const reached = new Set<number>();
    for (const position of this.#states[state] ?? []) {
      const token = this.#tokens[position];
      if (token === ANY_RUN) reached.add(position);
      else if (token === ANY_ONE || token === point) reached.add(position + 1);
    }
    return reached;
  }

  #stateOf(positions: Set<number>): number {
    for (const position of positions) {
      if (this.#tokens[position] === ANY_RUN) positions.add(position + 1);
    }
    const sorted = [...positions].sort((a, b) => a - b);
    const key = sorted.join();
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const state = this.#states.push(sorted) - 1;
    this.#steps.push(new Map());
    this.#known.set(key, state);
    return state;
  }
}
