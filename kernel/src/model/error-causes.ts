/** An error and what caused it, outermost first. */
export function* causesOf(error: unknown): Generator<Error> {
  let current = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth += 1) {
    yield current;
    current = current.cause;
  }
}

const CODE =
  /^(?:E(?!RR_)[A-Z_]+|ERR_STREAM_PREMATURE_CLOSE|ERR__\w+|HPE_\w+|Z_\w+|CERT_\w+|\w*_CERT\w*)$/;

/** The first code of the network, TLS, HTTP or a compression among the causes. */
export function networkCode(error: unknown): string | null {
  for (const each of causesOf(error)) {
    if ("code" in each && typeof each.code === "string" && CODE.test(each.code)) {
      return each.code;
    }
  }
  return null;
}
