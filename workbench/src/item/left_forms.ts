/** Forms that were left before they were saved: undoing brings them back; asks before the page is left. */

import type { Item, TableInfo } from "../api";
import type { Entry } from "../collection/window";
import { notify } from "../shell/notices";
import { Store } from "../store";
import type { Values } from "./edit_calls";

/** What stands in a form: the values of an entity's fields, or raw attributes. */
export interface Typed {
  values: Values | null;
  raw: Item | null;
}

export interface LeftForm extends Typed {
  /** The table of the page, and that of the item. */
  page: string;
  table: TableInfo;
  /** The item that was edited; null for a new one, of this kind and with these values to begin with. */
  entry: Entry | null;
  kind: string | null;
  given: Values | null;
  /** The address of the view that had the form. */
  address: string;
}

/** The form that is to be shown again. */
export const takenUp = new Store<LeftForm | null>(null);

export function offerBack(left: LeftForm): void {
  const what = left.entry ? `changes of ${left.kind ?? "an item"}` : `new ${left.kind ?? "item"}`;
  notify(`Not saved: ${what}`, { action: { title: "Undo", run: () => takeUp(left) } });
}

function takeUp(left: LeftForm): void {
  if (location.hash === left.address) return takenUp.set(left);
  addEventListener("hashchange", () => takenUp.set(left), { once: true }); // after the router, which listens longer
  location.hash = left.address;
}

/** Asks before the page is left while something is typed. */
export function guardPage(isTyped: () => boolean): () => void {
  const ask = (event: BeforeUnloadEvent) => {
    if (isTyped()) event.preventDefault();
  };
  addEventListener("beforeunload", ask);
  return () => removeEventListener("beforeunload", ask);
}
