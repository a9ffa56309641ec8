import { Ajv } from "ajv";

/** The compiler of the older dialects; behind a module of ours for the same reason as the current one. */
export { Ajv };
