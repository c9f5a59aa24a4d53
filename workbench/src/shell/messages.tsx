/** Shows errors in words for people, and short notices. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { reachable, type CallError } from "../api";
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
export function inWords({ text, detail }: Notice): string {
  return detail ? `${text}: ${detail}` : text;
}

/** The way back once the line at the bottom is gone: in the head of each page, as a phone has no keys. */
export function UndoButton() {
  const last = useStore(undoable).at(-1);
  const shown = useStore(notice);
  if (!last || shown?.action?.title === "Undo") return null;
  return (
    <button class="undo-last" aria-label={`Undo: ${inWords(last)}`} title={`Undo (u): ${inWords(last)}`} onClick={undoLast}>
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

const ADVICE: Record<string, string> = {
  ConditionalCheckFailedException: "The item has changed since it was read. Read it again, then repeat the change.",
  ResourceNotFoundException: "It may have been deleted meanwhile; the list at the left shows what there is.",
  ProvisionedThroughputExceededException: "The table has no units left for this second. Try again, or read fewer items.",
  SafeMode: "Click the lock at the bottom left to allow changes.",
  Disconnected: "Start it again, then repeat what you did.",
  AccessDeniedException: "The credentials that the workbench was started with do not allow it.",
  ConnectionFailed: "Check the address, and that the engine runs.",
};

const AGAIN = 2_000; // milliseconds until a server that does not answer is asked again

/** An error. `onRetry` repeats what failed; while the server does not answer, this is done by itself. */
export function Failure({ error, onRetry }: { error: CallError; onRetry?: () => void }) {
  const goesOn = error.code === "Disconnected" && onRetry !== undefined;
  useEffect(() => {
    if (!goesOn) return;
    const timer = setTimeout(onRetry, AGAIN);
    return () => clearTimeout(timer);
  }, [error]);
  const isBack = useStore(reachable) && error.code === "Disconnected" && !goesOn;
  const advice = goesOn ? "Start it again; the page then goes on by itself." : isBack ? "It answers again: repeat what you did." : ADVICE[error.code];
  return (
    <div class="failure" role="alert">
      <strong>{error.code === "UsageError" ? "This cannot be done" : error.code.replace(/Exception$/, "").replace(/([a-z])([A-Z])/g, "$1 $2")}</strong>
      <p>{error.message}</p>
      {advice && <p class="advice">{advice}</p>}
      {onRetry && <button onClick={onRetry}>Try again</button>}
    </div>
  );
}
