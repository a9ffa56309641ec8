/** What `cookie plugin init` can write. */
export const LANGUAGES = ["typescript", "python", "shell"] as const;
export type Language = (typeof LANGUAGES)[number];
