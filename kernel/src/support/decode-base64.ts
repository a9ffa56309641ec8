/** The bytes of padded base64; undefined for any other text, which Node would decode as far as it goes. */
export function decodeBase64(text: string): Buffer | undefined {
  const isBase64 = text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
  return isBase64 ? Buffer.from(text, "base64") : undefined;
}
