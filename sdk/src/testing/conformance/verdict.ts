/** The plugin does not conform: what it did, and what it must do. */
export class Finding extends Error {}

/** There is nothing to check, and why. */
export class NotApplicable extends Error {}

export function fail(did: string, must: string): never {
  throw new Finding(`the plugin ${did}; it must ${must}`);
}

export function skip(why: string): never {
  throw new NotApplicable(why);
}

/** Throws the first of sentences of the form "did; must". */
export function failOn(problems: readonly string[]): void {
  const [first] = problems;
  if (first !== undefined) throw new Finding(`the plugin ${first}`);
}
