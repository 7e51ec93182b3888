// What writing to a program that has just ended comes to.

const codes = new Set(["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"]);

/** Whether an error says that nobody reads any more, and nothing else. */
export function isBrokenPipe(err: unknown): boolean {
  return err instanceof Error && "code" in err && typeof err.code === "string" && codes.has(err.code);
}
