/** Polls the server while a view is shown, and rests while the page is hidden. */

import { useEffect } from "preact/hooks";

/** Works now, and again so many milliseconds after the work has ended, until it returns false.
 *
 * It rests while nobody can see the page. The signal says that the answer is not wanted any more. */
export function useRepeated(every: number, work: (signal: AbortSignal) => Promise<boolean>, inputs: unknown[]): void {
  useEffect(() => {
    const over = new AbortController();
    const follow = async () => {
      while (await work(over.signal)) {
        await rest(every, over.signal);
        if (over.signal.aborted) return;
      }
    };
    void follow();
    return () => over.abort();
  }, inputs);
}

/** Waits, and then until the page can be seen; not at all once the signal is given. It leaves no listener. */
async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((done) => {
    let isOver = false;
    const timer = setTimeout(() => ((isOver = true), look()), milliseconds);
    const look = () => {
      if (!signal.aborted && (!isOver || document.hidden)) return;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
