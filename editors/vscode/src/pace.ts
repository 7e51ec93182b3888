// When something that takes time to be drawn is drawn again.
//
// VS Code sends what an extension has set of a comment thread once nothing of it was set for 100 ms: set more often than
// that, a thread would stand still for as long as an answer streams. And a window that is given more than it can draw
// answers no click. So nothing is set again before what was set is sent, the window has taken it, and has then had as long
// for other things as that took.

/** From what was set to the next, in milliseconds, at least: VS Code's 100 and some to spare. */
export const gap = 120;

/** The longest that a slow window is spared, in milliseconds. */
const rest = 1000;

export class Pace {
  private timer: NodeJS.Timeout | undefined;
  private round = 0;
  private busy = false;
  private waiting = false;
  private disposed = false;

  /** taken resolves when the window has taken all that it was sent before. */
  constructor(
    private readonly draw: () => void,
    private readonly taken: () => PromiseLike<unknown>,
  ) {}

  /** Something has changed: it is drawn now, or with all else that changes before its turn comes. */
  soon(): void {
    if (this.busy) this.waiting = true;
    else this.now();
  }

  /** Something has changed that cannot wait. */
  now(): void {
    if (this.disposed) return;
    clearTimeout(this.timer);
    this.waiting = false;
    this.busy = true;
    const round = ++this.round;
    this.draw();
    this.timer = setTimeout(() => void this.settle(round), gap);
  }

  private async settle(round: number): Promise<void> {
    const since = Date.now();
    try {
      await this.taken();
    } catch {
      // The window is going away: nobody looks.
    }
    if (round !== this.round) return;
    this.timer = setTimeout(() => {
      this.busy = false;
      if (this.waiting) this.now();
    }, Math.min(Date.now() - since, rest));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.round++;
    this.disposed = true;
  }
}
