/** Says how many items stay below one that is deleted or moved: their keys are made from its values. */

import { useEffect, useState } from "preact/hooks";

import type { Entity, Item, TableInfo } from "../api";
import { plural } from "../values";
import { countBelow, MANY } from "./beside_it";
import type { Form } from "./edit_calls";

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
    countBelow(table, entity, form, item, cancel.signal).then(setCount, () => setCount(0)); // the write itself will tell
    return () => cancel.abort();
  }, [item]);
  if (!count) return null;
  const which = `${count >= MANY ? `More than ${MANY - 1} items` : plural(count, "item")} below it ${count === 1 ? "stays" : "stay"}`;
  return (
    <p class="waste" role="note">
      {which}{isMoved ? " where " : " as "}{count === 1 ? "it is" : "they are"}.
    </p>
  );
}
