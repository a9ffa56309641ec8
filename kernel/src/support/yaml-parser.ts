import { CST, isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument } from "yaml";

/** What is used of the YAML library; behind a module of ours so that a bundle can load it on demand. */
export { CST, isMap, isScalar, isSeq, Lexer, LineCounter, parseDocument };
