/** Order by UTF-8 bytes, which is order by code points (C-011). */
export function compareUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
