/** Another table beside the one of the page: its items, or one item collection of it. Its address is in that of the page. */

import { useEffect, useState } from "preact/hooks";

import { isDescribed, type TableInfo } from "../api";
import { CollectionView } from "../collection/collection_view";
import type { Entry } from "../collection/window";
import { href, route } from "../router";
import { loadModel, refreshTable, tables } from "../session";
import { useStore } from "../store";
import { TypedInput, textOf } from "./typed_input";
import { fromQuery, keysOf, toQuery, type View } from "./view";

/** A table beside, as the address has it. */
export interface Beside {
  table: string;
  query: Record<string, string>;
}

export const MOST_BESIDE = 3;

export function besideOf(text: string | undefined): Beside[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    if (!Array.isArray(found)) return [];
    return found
      .filter((each) => typeof each?.table === "string" && typeof each.query === "object" && each.query !== null)
      .slice(0, MOST_BESIDE) as Beside[];
  } catch {
    return [];
  }
}

/** The address of the page with another table beside it. */
export function withBeside(name: string): void {
  const all = besideOf(route.value.query["with"]);
  const next = [...all, { table: name, query: {} }].slice(-MOST_BESIDE);
  location.hash = href(route.value.path, { ...route.value.query, with: JSON.stringify(next) });
}

interface Props {
  beside: Beside;
  version: number;
  selected: string | null;
  onChange: (next: Beside | null) => void;
  onSelect: (table: TableInfo, entry: Entry, attribute?: string) => void;
  onOpen: (table: TableInfo, entry: Entry) => void;
}

export function SidePane({ beside, version, selected, onChange, onSelect, onOpen }: Props) {
  const listed = (useStore(tables) ?? []).find((each) => each.name === beside.table);
  const table = listed && isDescribed(listed) ? listed : null;
  useEffect(() => {
    if (!listed) return;
    loadModel(beside.table);
    if (!table) void refreshTable(beside.table);
  }, [beside.table, listed === undefined]);
  const view = table && fromQuery(table, beside.query);
  return (
    <section class="pane other-table" aria-label={beside.table}>
      <header class="other-head">
        <strong>{beside.table}</strong>
        {view && <Choice key={JSON.stringify(beside)} view={view} onShow={(next) => onChange({ table: beside.table, query: toQuery(next) })} />}
        <span class="space" />
        <a href={href(["t", beside.table, "items"], beside.query)} class="more-link">
          Open
        </a>
        <button class="icon" aria-label={`Close ${beside.table}`} onClick={() => onChange(null)}>
          ✕
        </button>
      </header>
      {view ? (
        <CollectionView view={view} version={version} selected={selected} keyboard={false} onSelect={(entry, attribute) => entry && onSelect(view.table, entry, attribute)} onOpen={(entry) => onOpen(view.table, entry)} />
      ) : (
        <p class="quiet part">{listed ? "Reading…" : `There is no table ${beside.table}.`}</p>
      )}
    </section>
  );
}

/** The index, and the partition to read. */
function Choice({ view, onShow }: { view: View; onShow: (view: View) => void }) {
  const keys = keysOf(view);
  const [texts, setTexts] = useState(() => keys.partition.map((_, place) => textOf(view.partition?.[place])));
  return (
    <form
      class="other-choice"
      onSubmit={(event) => {
        event.preventDefault();
        const isWhole = texts.every((each) => each !== "");
        onShow({ ...view, partition: isWhole ? keys.partition.map((each, place) => ({ [each.type]: texts[place]! })) : null });
      }}
    >
      {view.table.indexes.length > 0 && (
        <select
          aria-label={`Index of ${view.table.name}`}
          value={view.index?.name ?? ""}
          onChange={(event) => onShow({ ...view, index: view.table.indexes.find((each) => each.name === event.currentTarget.value) ?? null, partition: null, sort: null, start: null })}
        >
          <option value="">Table</option>
          {view.table.indexes.map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      )}
      {keys.partition.map((each, place) => (
        <TypedInput
          key={each.name}
          label={`${each.name} of ${view.table.name}`}
          type={each.type}
          placeholder={each.name}
          text={texts[place] ?? ""}
          onText={(text) => setTexts(texts.map((one, at) => (at === place ? text : one)))}
        />
      ))}
      <button>{texts.some((each) => each !== "") ? "Query" : "Scan"}</button>
    </form>
  );
}
