/** The columns of each entity, arranged by keyboard or mouse: shown or hidden, in which order, how wide, sorted by which. */

import { useStore } from "../store";
import { Dialog } from "../shell/dialog";
import { arrangementOf, arrangements, KEYS, move, reset, resize, toggle } from "./column_settings";
import { entityHue } from "./hues";
import type { Columns } from "./rows";
import { next, type Sorting } from "./sorting";

interface Props {
  table: string;
  columns: Columns;
  /** Of the key columns that the pane shows; null where it has none. */
  keyWidths: Partial<Record<"partition" | "sort", number>> | null;
  sorting: Sorting | null;
  onSort: (sorting: Sorting | null) => void;
  onClose: () => void;
}

const KEY_NAMES = { partition: "Partition key", sort: "Sort key" };

export function ColumnsDialog({ table, columns, keyWidths, sorting, onSort, onClose }: Props) {
  useStore(arrangements);
  return (
    <Dialog title="Columns" className="columns-dialog" onClose={onClose}>
      <h2>Columns</h2>
      <p class="quiet">Kept in this browser. Sorting orders the items that are loaded; it does not read more.</p>
      {keyWidths && (
        <section aria-label="Widths of the keys">
          <h3>Keys</h3>
          <ul class="column-list">
            {Object.entries(keyWidths).map(([name, width]) => (
              <li key={name}>
                <label class="key-width">
                  {KEY_NAMES[name as keyof typeof KEY_NAMES]}
                  <span class="space" />
                  <input type="number" step="20" value={width} onChange={(event) => event.currentTarget.value && resize(table, KEYS, name, Number(event.currentTarget.value))} />
                </label>
              </li>
            ))}
          </ul>
        </section>
      )}
      {columns.entities.map((entity, place) => (
        <OfEntity key={entity ?? ""} isFirst={place === 0} {...{ table, columns, entity, sorting, onSort }} />
      ))}
      <div class="actions">
        <button
          onClick={() => {
            for (const entity of columns.entities) reset(table, entity);
            reset(table, KEYS);
            onSort(null);
          }}
        >
          Reset
        </button>
        <button class="primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

interface OfEntityProps extends Omit<Props, "onClose" | "keyWidths"> {
  entity: string | null;
  isFirst: boolean;
}

function OfEntity({ table, columns, entity, isFirst, sorting, onSort }: OfEntityProps) {
  const { hidden, widths } = arrangementOf(table, entity);
  columns.arrange();
  const names = columns.names(entity);
  const shown = new Map(columns.of(entity).map((each) => [each.name, each.width]));
  const title = entity ?? "Items";
  return (
    <section aria-label={`Columns of ${title}`}>
      <h3>{entity ? <span class={`entity ${entityHue(table, entity)}`}>{entity}</span> : "Items"}</h3>
      <ul class="column-list">
        <li class="column-heads" aria-hidden="true">
          <span class="space" />
          <span>Sort</span>
          <span>Width</span>
          <span>Move</span>
        </li>
        {names.map((name, place) => {
          const sorted = sorting?.entity === entity && sorting.name === name ? sorting : null;
          return (
            <li key={name}>
              <label>
                <input type="checkbox" autoFocus={isFirst && place === 0} checked={!hidden.includes(name)} onChange={() => toggle(table, entity, name)} /> <code>{name}</code>
              </label>
              <span class="space" />
              <button
                class={sorted ? "sorted" : ""}
                aria-label={`Sort by ${name}`}
                aria-pressed={sorted !== null}
                title="Ascending, descending, as stored"
                onClick={() => onSort(next(sorting, entity, name))}
              >
                {sorted ? (sorted.descending ? "↓" : "↑") : "↕"}
              </button>
              <input
                type="number"
                aria-label={`Width of ${name}`}
                step="20"
                disabled={!shown.has(name)}
                value={shown.get(name) ?? widths[name] ?? ""}
                onChange={(event) => event.currentTarget.value && resize(table, entity, name, Number(event.currentTarget.value))}
              />
              <button class="icon" aria-label={`Move ${name} up`} disabled={place === 0} onClick={() => move(table, entity, names, name, names[place - 1]!)}>
                ↑
              </button>
              <button class="icon" aria-label={`Move ${name} down`} disabled={place === names.length - 1} onClick={() => move(table, entity, names, name, names[place + 2] ?? null)}>
                ↓
              </button>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
