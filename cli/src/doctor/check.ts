/** One thing that was looked at; `fix` says what to do when it is not `ok`. */
export interface Check {
  readonly name: string;
  readonly status: "ok" | "warning" | "failed";
  readonly detail: string;
  readonly fix?: string;
}

export function ok(name: string, detail: string): Check {
  return { name, status: "ok", detail };
}

export function warning(name: string, detail: string, fix: string): Check {
  return { name, status: "warning", detail, fix };
}

export function failed(name: string, detail: string, fix: string): Check {
  return { name, status: "failed", detail, fix };
}
