/** A second model `second` of the provider in `providerToml`, for config.toml. */
export const SECOND_MODEL = secondModel(200_000);

export function secondModel(contextTokens: number): string {
  return `
[providers."custom.test".models."second"]
display_name = "Second"

[providers."custom.test".models."second".capabilities]
input = ["text"]
output = ["text"]
context_tokens = ${contextTokens}
output_tokens = 100
tool_calling = true
parallel_tool_calls = true
structured_output = false
reasoning = false
temperature = false
top_p = false
seed = false
`;
}
