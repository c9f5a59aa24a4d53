/** The progress of a job, with a button that stops it. */

import { notify } from "../shell/notices";
import { count } from "../values";
import type { Job } from "./snapshot_calls";

interface Props {
  job: Job;
  what: string;
  onStop: () => Promise<unknown>;
}

export function JobLine({ job, what, onStop }: Props) {
  const of = job.of_items ? ` of about ${count(job.of_items)}` : "";
  return (
    <div class="job" aria-live="polite">
      <span class="numbers">
        {what}
        {job.items > 0 && `: ${count(job.items)}${of} items`}
        {job.seconds_left && job.seconds_left > 1 ? `, ${Math.round(job.seconds_left)} s left` : ""}
      </span>
      <progress value={job.share} max={1} aria-label={what} />
      <button onClick={() => void onStop().catch((failure: Error) => notify(failure.message, { failed: true }))}>Stop</button>
    </div>
  );
}
