import { ResponseError } from "vscode-jsonrpc";
import {
  CookieError,
  ERROR_NUMBERS,
  type ErrorCode,
  isCookieError,
  isErrorCode,
} from "../protocol/errors.ts";
import { safeMessage } from "./safe-message.ts";

/** The error member of a response: the number is for libraries, `data.code` is normative (E-171). */
export interface WireError {
  readonly code: number;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const OTHER_NUMBER = -32000;
const CODE = /^[a-z0-9][a-z0-9._:-]{0,127}$/;
const CODE_BY_NUMBER: ReadonlyMap<number, ErrorCode> = codesByNumber();

/** An error of ours travels as it is; anything else becomes `internal` without its text (E-171, E-172). */
export function toWireError(error: unknown, options: { lines?: boolean } = {}): WireError {
  if (!isCookieError(error)) {
    return { code: ERROR_NUMBERS.internal, message: "internal error", data: { code: "internal" } };
  }
  return {
    code: isErrorCode(error.code) ? ERROR_NUMBERS[error.code] : OTHER_NUMBER,
    message: safeMessage(error.message, options),
    data: { ...error.data, code: error.code },
  };
}

/** What a peer's error response says; its text is treated as hostile. */
export function fromWireError(
  error: ResponseError<unknown>,
  options: { lines?: boolean } = {},
): CookieError {
  const { code, ...data } = isRecord(error.data) ? error.data : { code: undefined };
  const known =
    typeof code === "string" && CODE.test(code)
      ? code
      : (CODE_BY_NUMBER.get(error.code) ?? "execution_failed");
  const message = typeof error.message === "string" ? error.message : "";
  return new CookieError(known, safeMessage(message, options), { data });
}

export function toResponseError(error: WireError): ResponseError<unknown> {
  return new ResponseError(error.code, error.message, error.data);
}

function codesByNumber(): Map<number, ErrorCode> {
  const codes = new Map<number, ErrorCode>();
  for (const [code, number] of Object.entries(ERROR_NUMBERS)) {
    if (number !== OTHER_NUMBER && !codes.has(number) && isErrorCode(code)) codes.set(number, code);
  }
  return codes;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
