// When something that takes time to be drawn is drawn again.
//
// VS Code sends what an extension has set of a comment thread once nothing of it was set for 100 ms: set more often than
// that, a thread would stand still for as long as an answer streams. And a window that is given more than it can draw
// answers no click. So nothing is set again before what was set is sent, the window has taken it, and has then had as long
// for other things as that took.

export interface Tempo {
  /** From what was drawn until the window is asked whether it has it, in milliseconds. */
  gap: number;
  /** How long the window is spared when it took so long, both in milliseconds. */
  spare: (took: number) => number;
}

/** Of a thread: VS Code's 100 ms and some to spare; then as long as it took, and no longer than a second. */
export const ofThread: Tempo = { gap: 120, spare: (took) => Math.min(took, 1000) };

/** Of a transcript, which is rendered and taken whole: four times as long as that took. */
export const ofTranscript: Tempo = { gap: 0, spare: (took) => Math.max(400, 4 * took) };

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
    private readonly tempo: Tempo,
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
    this.timer = setTimeout(() => void this.settle(round), this.tempo.gap);
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
    }, this.tempo.spare(Date.now() - since));
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.round++;
    this.disposed = true;
  }
}
