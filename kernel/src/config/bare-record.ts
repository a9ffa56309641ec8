/** A record without a prototype, so that a name such as `__proto__` is a member like any other. */
export function bareRecord<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>;
}
