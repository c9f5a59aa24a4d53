/** Before a deletion or a move: says how many items that belong to the item stay where they are. */

import { useEffect, useState } from "preact/hooks";

import type { Entity, Item, TableInfo } from "../api";
import type { Entry } from "../collection/window";
import { plural } from "../values";
import { itemsBelow, MANY, mayHaveBelow } from "./beside_it";
import { forAll } from "./changes";
import { entityOf, readForm, type Form } from "./edit_calls";

interface Props {
  table: TableInfo;
  entity: Entity;
  form: Form;
  item: Item;
  /** Whether the item gets another key; otherwise it is deleted. */
  isMoved?: boolean;
}

export function Below({ table, entity, form, item, isMoved = false }: Props) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const cancel = new AbortController();
    itemsBelow(table, entity, form, item, cancel.signal).then((found) => setCount(found.size), () => setCount(0)); // the write itself will tell
    return () => cancel.abort();
  }, [item]);
  return <Staying count={count} of="it" isMoved={isMoved} />;
}

const MOST_ASKED = 200; // items of a selection whose collections are read

/** The same for several that are deleted together: items that are among them do not stay. */
export function BelowAll({ table, entries }: { table: TableInfo; entries: Entry[] }) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    const cancel = new AbortController();
    const chosen = new Set(entries.map((each) => each.id));
    const parents = entries.filter((each) => mayHaveBelow(table, entityOf(table.name, each.entity)!)).slice(0, MOST_ASKED);
    const below = async ({ item, entity }: Entry) =>
      itemsBelow(table, entityOf(table.name, entity)!, await readForm(table, item, cancel.signal), item, cancel.signal);
    void forAll(parents, below, () => undefined).then(({ made }) => {
      const staying = new Set(made.flatMap((each) => [...each]).filter((each) => !chosen.has(each)));
      if (!cancel.signal.aborted) setCount(staying.size);
    });
    return () => cancel.abort();
  }, []);
  return <Staying count={count} of={entries.length === 1 ? "it" : "them"} />;
}

function Staying({ count, of, isMoved = false }: { count: number; of: string; isMoved?: boolean }) {
  if (!count) return null;
  const which = `${count >= MANY ? `More than ${MANY - 1} items` : plural(count, "item")} that ${count === 1 ? `belongs to ${of} stays` : `belong to ${of} stay`}`;
  return (
    <p class="waste" role="note">
      {which}{isMoved ? " where " : " as "}{count === 1 ? "it is" : "they are"}.
    </p>
  );
}
