import {
  type ContextId,
  CookieError,
  checkValue,
  grantOf,
  type Method,
  type ParamsOf,
} from "@cookie-agent/sdk/protocol";
import type { ContextScope } from "./context-grants.ts";
import type { HostRequestsOptions } from "./host-requests-options.ts";
import type { CallContext } from "./host-services.ts";

type Contextual = { readonly context_id: ContextId };

/** A request that may be answered: its params, and on whose behalf it was made. */
export interface OpenedContext<M extends Method> {
  readonly context: CallContext;
  readonly params: ParamsOf<M> & Contextual;
}

/** Throws the first that is missing of grant, valid params and a context of the scope, in this order (E-118). */
export function openContext<M extends Method>(
  raw: unknown,
  options: HostRequestsOptions,
  method: M,
  scope: ContextScope,
): OpenedContext<M> {
  const grant = grantOf(method.name);
  if (grant === undefined || !options.isGranted(grant)) throw notGranted(method.name, grant);
  const params = parseParams(method, raw) as ParamsOf<M> & Contextual;
  return { context: options.grants.resolve(params.context_id, scope), params };
}

export function requireInitialized(
  { initialized }: Pick<HostRequestsOptions, "initialized">,
  method: string,
): void {
  if (!initialized()) throw notInitialized(method);
}

export function notInitialized(method: string): CookieError {
  return new CookieError("not_initialized", `answer plugin/initialize before ${method}`);
}

export function notGranted(method: string, capability = method): CookieError {
  return new CookieError("not_granted", `${method} needs the capability ${capability}`, {
    data: { capability },
  });
}

export function parseParams<M extends Method>(method: M, raw: unknown): ParamsOf<M> {
  const checked = checkValue(method.params, raw);
  if (checked.ok) return checked.value as ParamsOf<M>;
  const { field, problem } = checked;
  throw new CookieError(
    "invalid_params",
    `invalid params of ${method.name}: ${field}: ${problem}`,
    { data: { field } },
  );
}

export function requireSession({ session }: CallContext) {
  if (session === undefined) throw unknownSession();
  return session;
}

export function unknownSession(): CookieError {
  return new CookieError("context_invalid", "the context does not give access to a session");
}
