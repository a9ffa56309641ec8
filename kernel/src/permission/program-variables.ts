const NAMES: ReadonlySet<string> = new Set(
  `PATH IFS ENV PS4 SHELL SHELLOPTS BASHOPTS PROMPT_COMMAND HOME XDG_CONFIG_HOME PAGER EDITOR VISUAL BROWSER
  LESSOPEN LESSCLOSE NODE_OPTIONS NODE_PATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS MAKEFLAGS MAKEFILES
  GNUMAKEFLAGS TAR_OPTIONS RIPGREP_CONFIG_PATH GCC_EXEC_PREFIX GOFLAGS`.split(/\s+/),
);
const PREFIXES = /^(?:LD_|DYLD_|BASH_|GIT_|PYTHON|PERL|RUBY|npm_config_|CARGO_|RUSTC)/i;
const SUFFIXES = /(?:PAGER|EDITOR|_ASKPASS|_COMMAND|_WRAPPER)$/;

/** True for a variable that decides which program runs, or makes programs load or run another one. */
export function redirectsPrograms(variable: string): boolean {
  return NAMES.has(variable) || PREFIXES.test(variable) || SUFFIXES.test(variable);
}
