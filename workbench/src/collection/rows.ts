/** Lays out items: partitions, runs of one entity with the names of its attributes above, a column for each attribute.
 *
 * Heights are known before anything is drawn. */

import { shortText } from "../values";
import type { Entry } from "./window";

export const ITEM = 30;
export const HEAD = 25;
export const GAP = 14;

const CHARACTER = 7.3;
const NARROWEST = 64;
const WIDEST = 300;

export interface Row {
  kind: "head" | "item";
  /** Within its page. */
  top: number;
  height: number;
  entry: Entry;
  /** The first row of its partition. */
  starts: boolean;
}

/** Where two pages meet: the last partition and entity of one decide whether the next repeats them. */
export interface Seam {
  group: string;
  entity: string | null;
  outside: boolean;
}

export interface Laid {
  rows: Row[];
  height: number;
  first: Seam | null;
  last: Seam | null;
}

export function layOut(entries: Entry[], previous: Seam | null, columns: Columns): Laid {
  const rows: Row[] = [];
  let top = 0;
  let seam = previous;
  columns.learn(entries);
  for (const entry of entries) {
    const starts = seam === null || seam.group !== entry.group;
    if (starts && seam !== null) top += GAP;
    if (starts || seam?.entity !== entry.entity || seam.outside !== entry.outside) {
      rows.push({ kind: "head", top, height: HEAD, entry, starts });
      top += HEAD;
    }
    rows.push({ kind: "item", top, height: ITEM, entry, starts: false });
    top += ITEM;
    seam = entry;
  }
  return { rows, height: top, first: entries[0] ?? null, last: seam };
}

function widthOf(texts: string[], least: number, most: number): number {
  const longest = Math.max(...texts.map((each) => each.length));
  return Math.round(Math.min(most, Math.max(least, longest * CHARACTER + 30)));
}

export interface Column {
  name: string;
  left: number;
  width: number;
}

/** The columns of each entity. A column keeps its place and width once it is there, so nothing jumps. */
export class Columns {
  private byEntity = new Map<string | null, Map<string, Column>>();
  private ends = new Map<string | null, number>();
  width = 0;
  /** The widths of the key columns, after the first page. */
  partition = 210;
  sort = 290;
  private isFitted = false;

  constructor(private hidden = new Set<string>()) {}

  hide(names: string[]): void {
    this.hidden = new Set(names);
  }

  of(entity: string | null): Column[] {
    return [...(this.byEntity.get(entity)?.values() ?? [])];
  }

  /** Makes the key columns as wide as the first page needs. */
  fit(partition: string[], sort: string[]): void {
    if (this.isFitted || !partition.length) return;
    this.isFitted = true;
    this.partition = widthOf(partition, 130, 280);
    this.sort = widthOf(sort, 170, 340);
  }

  /** Makes the columns that a page adds, each as wide as the widest of its values on that page. */
  learn(entries: Entry[]): void {
    const added = new Map<string | null, Map<string, number>>();
    for (const { entity, item } of entries) {
      const known = this.byEntity.get(entity);
      let widths = added.get(entity);
      if (!widths) added.set(entity, (widths = new Map()));
      for (const [name, value] of Object.entries(item)) {
        if (this.hidden.has(name) || known?.has(name)) continue;
        const length = Math.max(name.length, shortText(value, 48).length, widths.get(name) ?? 0);
        widths.set(name, length);
      }
    }
    for (const [entity, widths] of added) for (const [name, length] of widths) this.add(entity, name, length);
  }

  private add(entity: string | null, name: string, characters: number): void {
    let columns = this.byEntity.get(entity);
    if (!columns) this.byEntity.set(entity, (columns = new Map()));
    const left = this.ends.get(entity) ?? 0;
    const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, characters * CHARACTER + 28)));
    columns.set(name, { name, left, width });
    this.ends.set(entity, left + width);
    this.width = Math.max(this.width, left + width);
  }
}
