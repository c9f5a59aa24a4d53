/** Shows errors in words for people, and short notices. */

import { useEffect } from "preact/hooks";

import type { CallError } from "../api";
import { Store, useStore } from "../store";

interface Notice {
  text: string;
  kind: "done" | "failed";
  action?: { title: string; run: () => void };
}

const notice = new Store<Notice | null>(null);
/** The last change that can still be undone, also after its line is gone. */
export const undoable = new Store<Notice | null>(null);
let timer = 0;

/** Shows a line at the bottom for a while; an action, such as undo, can be taken meanwhile. */
export function notify(text: string, options: { failed?: boolean; action?: Notice["action"] } = {}): void {
  clearTimeout(timer);
  const shown: Notice = { text, kind: options.failed ? "failed" : "done" };
  if (options.action) shown.action = options.action;
  notice.set(shown);
  if (options.action?.title === "Undo") undoable.set(shown);
  timer = setTimeout(() => notice.set(null), options.action ? 12_000 : 4_000) as unknown as number;
}

export function undoLast(): void {
  const last = undoable.value;
  if (last) take(last);
  else notify("There is nothing to undo");
}

function take(shown: Notice): void {
  notice.set(null);
  if (undoable.value === shown) undoable.set(null);
  shown.action!.run();
}

export function Notices() {
  const shown = useStore(notice);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown && (
        <div class={`notice ${shown.kind}`}>
          <span>{shown.text}</span>
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
  const advice = goesOn ? "Start it again; the page then goes on by itself." : ADVICE[error.code];
  return (
    <div class="failure" role="alert">
      <strong>{error.code === "UsageError" ? "This cannot be done" : error.code.replace(/Exception$/, "").replace(/([a-z])([A-Z])/g, "$1 $2")}</strong>
      <p>{error.message}</p>
      {advice && <p class="advice">{advice}</p>}
      {onRetry && <button onClick={onRetry}>Try again</button>}
    </div>
  );
}
