import { ExitCode, ExitError } from "../exit-code.ts";
import { describeError } from "../report-error.ts";

/** What fails before the run exists is a failure of set-up (C 7.3). */
export async function setUp<T>(step: Promise<T>): Promise<T> {
  try {
    return await step;
  } catch (error) {
    if (error instanceof ExitError) throw error;
    const { code, message } = describeError(error);
    throw new ExitError(ExitCode.setup, code, message, error);
  }
}
