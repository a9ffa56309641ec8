/** As the header claims it; nothing is decoded. */
export interface ImageSize {
  readonly width: number;
  readonly height: number;
  /** 1 when absent. */
  readonly frames?: number;
}
