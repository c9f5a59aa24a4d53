/** A link to one item in its collection, in a tab of its own: what was typed beside the link stays. */

import type { ComponentChildren } from "preact";

import type { Item, TableInfo } from "../api";
import { toQuery } from "../query/view";
import { href } from "../router";

export function ItemLink({ table, of, children }: { table: TableInfo; of: Item; children: ComponentChildren }) {
  const [sort] = table.keys.sort;
  const view = {
    table,
    index: null,
    partition: table.keys.partition.map((each) => of[each.name]!),
    sort: sort ? { operator: "=" as const, values: [of[sort.name]!] } : null,
    filters: [],
    descending: false,
    start: null,
  };
  return (
    <a class="more-link" target="_blank" rel="noopener" title="In a new tab: what is typed here stays" href={href(["t", table.name, "items"], toQuery(view))}>
      {children} <span aria-hidden="true">↗</span>
    </a>
  );
}
