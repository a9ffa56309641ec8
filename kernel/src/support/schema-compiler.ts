import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

/** The JSON Schema compilers, behind one module of ours so that they can be loaded when first needed. */
export { Ajv, Ajv2020 };
