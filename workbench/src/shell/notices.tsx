/** The line at the bottom that says what was done, and Undo (`u`): of the last fifty changes, the last one first. */

import { useLayoutEffect, useRef } from "preact/hooks";

import { Store, useStore } from "../store";

interface Notice {
  text: string;
  /** To which item, and what of it: `fee: 20 → 25`. */
  detail: string;
  kind: "done" | "failed";
  action?: { title: string; run: () => void };
}

const notice = new Store<Notice | null>(null);
/** The changes that can still be undone, the last one at the end, also after their lines are gone. */
export const undoable = new Store<Notice[]>([]);
const MOST_UNDONE = 50;
let timer = 0;

/** Shows a line at the bottom for a while; an action, such as undo, can be taken meanwhile. */
export function notify(text: string, options: { failed?: boolean; action?: Notice["action"]; detail?: string } = {}): void {
  clearTimeout(timer);
  const shown: Notice = { text, detail: options.detail ?? "", kind: options.failed ? "failed" : "done" };
  if (options.action) shown.action = options.action;
  notice.set(shown);
  if (options.action?.title === "Undo") undoable.update((all) => [...all, shown].slice(-MOST_UNDONE));
  timer = setTimeout(() => notice.set(null), options.action ? 12_000 : 4_000) as unknown as number;
}

/** Answers a key that would write. */
export function tellSafeMode(): void {
  notify("Safe mode: nothing can be written. Click the lock at the bottom left to allow changes.");
}

export function undoLast(): void {
  const last = undoable.value.at(-1);
  if (last) take(last);
  else notify("There is nothing to undo");
}

function take(shown: Notice): void {
  notice.set(null);
  undoable.update((all) => all.filter((each) => each !== shown));
  shown.action!.run();
}

/** What was done, in a line. */
export function noticeInWords({ text, detail }: Notice): string {
  return detail ? `${text}: ${detail}` : text;
}

/** The way back once the line at the bottom is gone: in the head of each page, as a phone has no keys. */
export function UndoButton() {
  const last = useStore(undoable).at(-1);
  const shown = useStore(notice);
  if (!last || shown?.action?.title === "Undo") return null;
  return (
    <button class="undo-last" aria-label={`Undo: ${noticeInWords(last)}`} title={`Undo (u): ${noticeInWords(last)}`} onClick={undoLast}>
      ↶ <span>Undo</span>
    </button>
  );
}

export function Notices() {
  const shown = useStore(notice);
  const layer = useRef<HTMLDivElement>(null);
  // An open dialog would dim it: then it is in the top layer of the browser, too, where the last one is in front.
  useLayoutEffect(() => {
    layer.current?.hidePopover();
    if (shown && document.querySelector("dialog[open]")) layer.current?.showPopover();
  }, [shown]);
  return (
    <div class="notices" role="status" aria-live="polite" popover="manual" ref={layer}>
      {shown && (
        <div class={`notice ${shown.kind}`}>
          <span>{shown.text}</span>
          {shown.detail && <span class="detail">{shown.detail}</span>}
          {shown.action && (
            <button
              title={shown.action.title === "Undo" ? "u, also when this line is gone" : undefined}
              class="link"
              onClick={() => take(shown)}
            >
              {shown.action.title}
            </button>
          )}
        </div>
      )}
    </div>
  );
}
