import { place, scene, sceneApart } from "./scene";
import type { Window } from "./window";

// How long after a click on the inline stop it is seen, while an answer streams: the first in a window, where nothing is warm,
// and the later ones. For people to read: what a machine is busy with is in it.

async function stopped(w: Window): Promise<Record<string, number>> {
  await w.ask("Tell a long story.");
  await w.answer(/w9/);
  return w.stopClick();
}

function report(what: string, times: Record<string, number>[]): void {
  const names = { status: "stopping… in the status bar", title: "stopping… in the thread's title", stopped: "Stopped here" };
  for (const [name, says] of Object.entries(names)) {
    const sorted = times.flatMap((t) => t[name] ?? []).sort((a, b) => a - b);
    const at = (q: number): string => String(sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? "-");
    console.log(`   ${what}: ${says} after ${at(0.5)} ms, ${at(0)}…${at(1)} (n=${sorted.length})`);
  }
}

const first: Record<string, number>[] = [];
for (let i = 1; i <= 5; i++) sceneApart(`the first stop in window ${i}`, async (project) => {
  const w = await place().open(project);
  await w.file("main.go", 5);
  first.push(await stopped(w));
  if (i === 5) report("the first in a window", first);
});

scene("later stops", async (w) => {
  const later: Record<string, number>[] = [];
  for (let i = 0; i <= 20; i++) {
    later.push(await stopped(w));
    await w.lane();
    await w.action("close").click();
    await w.thread().waitFor({ state: "detached" });
    await w.page.locator(".view-line", { hasText: "func main" }).click(); // the keyboard was in the lane that has gone
  }
  report("later ones", later.slice(1));
});
