/** Somebody else has changed the item: both versions, field by field; drop yours, or save it over theirs. */

import { useEffect, useState } from "preact/hooks";

import type { CallError, Entity, Item, TableInfo } from "../api";
import { Failure } from "../shell/failure";
import { readForm, type Form, type Refusal, type Values } from "./edit_calls";
import { typedText } from "./typed_field";

interface Props {
  table: TableInfo;
  entity: Entity;
  refusal: Refusal;
  /** The form of the item over which the edit was to be saved. */
  began: Form | null;
  /** What was to be saved. */
  mine: Values;
  saving: boolean;
  /** Saves what was typed over the item as it is now, with its form. */
  onMine: (now: Item, theirs: Form) => void;
  /** Drops what was typed. */
  onTheirs: (now: Item | null) => void;
}

export function Conflict({ table, entity, refusal, began, mine, saving, onMine, onTheirs }: Props) {
  const [theirs, setTheirs] = useState<Form | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const now = refusal.item;
  useEffect(() => {
    const cancel = new AbortController();
    setTheirs(null);
    if (now) readForm(table, now, cancel.signal).then(setTheirs, (failure: CallError) => cancel.signal.aborted || setError(failure));
    return () => cancel.abort();
  }, [now]);
  const differs = (name: string) => JSON.stringify(theirs?.values[name] ?? null) !== JSON.stringify(began?.values[name] ?? null);
  const rows = theirs ? entity.fields.map((each) => each.name).filter((name) => name in mine || differs(name)) : [];
  const both = rows.filter((name) => name in mine && differs(name));
  return (
    <div class="confirm conflict" role="alertdialog" aria-label="Somebody else changed it">
      <p>
        <strong>{now ? "Somebody else changed this item while you edited it." : "Somebody else deleted this item while you edited it."}</strong>
      </p>
      <p class="quiet">{refusal.message}</p>
      {error && <Failure error={error} />}
      {theirs && (
        <div class="scrolls">
          <table class="grid versions">
            <thead>
              <tr>
                <th scope="col">field</th>
                <th scope="col">before</th>
                <th scope="col">theirs</th>
                <th scope="col">yours</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((name) => (
                <tr key={name} class={both.includes(name) ? "both" : ""}>
                  <th scope="row">{name}</th>
                  <td>{typedText(began?.values[name])}</td>
                  <td>{differs(name) ? <ins>{typedText(theirs.values[name])}</ins> : <span class="quiet">as before</span>}</td>
                  <td>{name in mine ? <ins>{typedText(mine[name])}</ins> : <span class="quiet">as before</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {now && theirs && (
        <p>{both.length ? `Both changed ${both.join(", ")}: one of the two is lost.` : "Your fields are not those that they changed, so both can be kept."}</p>
      )}
      <div class="actions">
        <button onClick={() => onTheirs(now)}>
          {now ? "Drop mine" : "Close"}
        </button>
        {now && (
          <button class={both.length ? "danger" : "primary"} disabled={saving || !theirs} onClick={() => theirs && onMine(now, theirs)}>
            {both.length ? "Save mine over theirs" : "Save mine, too"}
          </button>
        )}
      </div>
    </div>
  );
}
