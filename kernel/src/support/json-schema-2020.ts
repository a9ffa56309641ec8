import { Ajv2020 } from "ajv/dist/2020.js";

/** The compiler of today's dialect, behind a module of ours: a bundle can load that on demand, CommonJS it cannot. */
export { Ajv2020 };
