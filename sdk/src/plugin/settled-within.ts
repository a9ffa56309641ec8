/** Waits until all of it has settled, however it ended, and no longer than `timeoutMs`. */
export async function settledWithin(
  work: readonly Promise<unknown>[],
  timeoutMs: number,
): Promise<void> {
  if (work.length === 0) return;
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([Promise.allSettled(work), expiry]);
  clearTimeout(timer);
}
