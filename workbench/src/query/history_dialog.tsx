/** The dialog Saved queries (`h`): lists recent and saved queries, saves one under a name, deletes one. */

import { useEffect, useState } from "preact/hooks";

import type { CallError } from "../api";
import { Dialog } from "../shell/dialog";
import { useStore } from "../store";
import { Failure } from "../shell/failure";
import { forget, history, readSaved, save, saved, teamFile, type Kept } from "./history";

interface Props {
  /** What is saved, and where it is shown. */
  words: string;
  address: string;
  onClose: () => void;
}

export function HistoryDialog({ words, address, onClose }: Props) {
  const past = useStore(history);
  const named = useStore(saved());
  const file = teamFile();
  const [name, setName] = useState("");
  const [error, setError] = useState<CallError | null>(null);
  const run = (work: Promise<void>) => void work.then(() => setError(null), setError);
  useEffect(() => run(readSaved()), []);
  const list = (kept: Kept[], removable: boolean) => (
    <ul class="kept">
      {kept.map((each) => (
        <li key={(each.name ?? "") + each.address}>
          <a href={each.address} onClick={onClose}>
            {each.name && <strong>{each.name}</strong>}
            <span>{each.words}</span>
          </a>
          {removable && (
            <button class="icon" aria-label={`Forget ${each.name}`} onClick={() => run(forget(each.name!))}>
              ✕
            </button>
          )}
        </li>
      ))}
    </ul>
  );
  return (
    <Dialog title="Queries" className="queries" onClose={onClose}>
      <h2>Save this query</h2>
      <form
        class="line"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim()) run(save(address, words, name.trim()));
          setName("");
        }}
      >
        <input autoFocus aria-label="Name" placeholder="Name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <button class="primary" disabled={!name.trim()}>Save</button>
      </form>
      <p class="quiet">{words}</p>
      {error && <Failure error={error} />}
      {file && (
        <p class="quiet">
          Saved queries are in <code>{file}</code>, for everyone who has the file.
        </p>
      )}
      {named.length > 0 && <h2>Saved</h2>}
      {list(named, true)}
      <h2>Recent</h2>
      {past.length ? list(past, false) : <p class="quiet">Queries that you run appear here.</p>}
      <div class="actions">
        <button onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}
