const JANITOR_INTERVAL_MS = 60_000;

/** Has idle sessions and old output looked after once a minute, one round at a time; yields what ends that (S-100). */
export function startJanitor(
  tidy: () => Promise<void>,
  onFailure: (error: unknown) => void,
): () => void {
  let isTidying = false;
  const timer = setInterval(() => {
    if (isTidying) return;
    isTidying = true;
    tidy()
      .catch(onFailure)
      .finally(() => {
        isTidying = false;
      });
  }, JANITOR_INTERVAL_MS);
  // Whoever has nothing else to do may go.
  timer.unref();
  return () => clearInterval(timer);
}
