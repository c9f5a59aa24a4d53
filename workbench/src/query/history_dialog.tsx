/** The dialog of queries: those that were run, and those that were saved under a name. */

import { useState } from "preact/hooks";

import { Dialog } from "../shell/dialog";
import { useStore } from "../store";
import { forget, history, save, saved, type Kept } from "./history";

interface Props {
  /** What is saved, and where it is shown. */
  words: string;
  address: string;
  onClose: () => void;
}

export function HistoryDialog({ words, address, onClose }: Props) {
  const past = useStore(history);
  const named = useStore(saved);
  const [name, setName] = useState("");
  const list = (kept: Kept[], removable: boolean) => (
    <ul class="kept">
      {kept.map((each) => (
        <li key={(each.name ?? "") + each.address}>
          <a href={each.address} onClick={onClose}>
            {each.name && <strong>{each.name}</strong>} <span>{each.words}</span>
          </a>
          {removable && (
            <button class="icon" aria-label={`Forget ${each.name}`} onClick={() => forget(each.name!)}>
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
          if (name.trim()) save(address, words, name.trim());
          setName("");
        }}
      >
        <input autoFocus aria-label="Name" placeholder="Name" value={name} onInput={(event) => setName(event.currentTarget.value)} />
        <button class="primary" disabled={!name.trim()}>Save</button>
      </form>
      <p class="quiet">{words}</p>
      {named.length > 0 && <h2>Saved</h2>}
      {list(named, true)}
      <h2>Recent</h2>
      {past.length ? list(past, false) : <p class="quiet">Queries that you run appear here.</p>}
    </Dialog>
  );
}
