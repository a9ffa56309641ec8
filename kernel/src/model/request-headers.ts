import { ADAPTORS, FORBIDDEN_HEADERS } from "../config/provider-rules.ts";
import type { CompiledModel } from "./compile-provider.ts";

/** A change of the headers that the configuration adds to a request; names in lower case. */
export interface HeaderChange {
  readonly set: ReadonlyMap<string, string>;
  readonly removed: ReadonlySet<string>;
}

/** The headers of a model's requests as far as others may see and change them. */
export interface RequestHeaders {
  /** Names in lower case; none of them holds a credential. */
  readonly shown: Readonly<Record<string, string>>;
  /** Why a header cannot be set or deleted; undefined when it can. */
  problemOf(name: string, value: string): string | undefined;
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** Printable text; anything else could end the header. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** What such a name holds may be a secret, whoever wrote it. */
const CREDENTIAL = /auth|cookie|credential|key|passw|secret|session|signature|token/i;

export function requestHeaders({ adaptor, auth, headers }: CompiledModel): RequestHeaders {
  const owned = new Set([
    ...FORBIDDEN_HEADERS,
    ...(ADAPTORS.get(adaptor.id)?.ownedHeaders ?? []),
    ...(auth.kind === "header" ? [auth.name.toLowerCase()] : []),
  ]);
  return {
    shown: Object.fromEntries(
      Object.entries(headers).filter(([name]) => !owned.has(name) && !CREDENTIAL.test(name)),
    ),
    problemOf(name, value) {
      if (!NAME.test(name)) return "it is no header name";
      if (owned.has(name.toLowerCase())) return "it belongs to the kernel";
      if (CREDENTIAL.test(name)) return "its name is that of a credential";
      return VALUE.test(value) ? undefined : "its value cannot be sent";
    },
  };
}

/** A response's counts of tokens are no secret. */
const RESPONSE_CREDENTIAL =
  /auth|cookie|credential|api-?key|passw|secret|session|signature|token$/i;

/** Response headers without what would let others act as the user. */
export function shownResponseHeaders(
  headers: ReadonlyMap<string, string>,
): Readonly<Record<string, string>> {
  return Object.fromEntries([...headers].filter(([name]) => !RESPONSE_CREDENTIAL.test(name)));
}
