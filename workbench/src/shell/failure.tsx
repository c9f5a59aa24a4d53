/** An error in words for people: what to do; repeats what failed once a server that was away answers again. */

import { useEffect } from "preact/hooks";

import { reachable, type CallError } from "../api";
import { useStore } from "../store";

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
