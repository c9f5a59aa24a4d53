/** Lays out items as the books draw them: a partition begins after a gap, a run of one entity has the names of its
 * attributes above it, and attributes are columns for each entity. Heights are known before anything is drawn. */

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
  for (const entry of entries) {
    columns.learn(entry);
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

  constructor(private hidden = new Set<string>()) {}

  hide(names: string[]): void {
    this.hidden = new Set(names);
  }

  of(entity: string | null): Column[] {
    return [...(this.byEntity.get(entity)?.values() ?? [])];
  }

  learn(entry: Entry): void {
    const { entity, item } = entry;
    let columns = this.byEntity.get(entity);
    if (!columns) this.byEntity.set(entity, (columns = new Map()));
    for (const [name, value] of Object.entries(item)) {
      if (this.hidden.has(name) || columns.has(name)) continue;
      const left = this.ends.get(entity) ?? 0;
      const characters = Math.max(name.length + 1, shortText(value, 48).length) + 2;
      const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, characters * CHARACTER + 14)));
      columns.set(name, { name, left, width });
      this.ends.set(entity, left + width);
      this.width = Math.max(this.width, left + width);
    }
  }
}
