/** Lays out items: partitions, runs of one entity with the names of its attributes above, a column for each attribute.
 *
 * Heights are known before anything is drawn. */

import type { Field } from "../api";
import { models } from "../session";
import { own, shortMoment, shortText } from "../values";
import { arrangementOf, KEYS } from "./column_settings";
import type { Entry } from "./window";

export const ITEM = 30;
/** Of a screen that is touched. */
export const TOUCHED = 44;
export const HEAD = 25;
export const GAP = 14;
/** A row of a narrow pane has its first values below its key. */
export const STACKED = 48;

const CHARACTER = 7.3;
const SORT_HEADING = 172; // "Sort key" and "↓ ascending", around the names of the key
const PARTITION_HEADING = 106; // "Partition key", before the names of the key
const VALUES = 180; // for the values beside the keys
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
    rows.push({ kind: "item", top, height: columns.itemHeight, entry, starts: false });
    top += columns.itemHeight;
    seam = entry;
  }
  return { rows, height: top, first: entries[0] ?? null, last: seam };
}

function widthOf(texts: string[], least: number, most: number): number {
  const longest = Math.max(...texts.map((each) => each.length));
  return Math.round(Math.min(most, Math.max(least, longest * CHARACTER + 30)));
}

function widthFor(characters: number): number {
  return Math.round(Math.min(WIDEST, Math.max(NARROWEST, characters * CHARACTER + 28)));
}

const SMALL = 6.7; // a character of a narrow pane's values
const MOST_SMALL = 24; // characters of such a value; what is longer is cut

/** The columns whose names and values have room in a line, for all items of an entity the same, so that they can be compared:
 * one that is mostly too wide is passed over for those behind it. */
export function inOneLine(columns: Column[], room: number): Column[] {
  let left = room - 30; // for how many there are besides
  const found = columns.filter(({ name, usual }) => {
    const needed = (name.length + 1 + Math.min(usual, MOST_SMALL)) * SMALL + 12;
    if (needed > left) return false;
    left -= needed;
    return true;
  });
  return found.length ? found : columns.slice(0, 1);
}

/** Whether a value only repeats the name of the item's entity, which stands above its columns. */
function isTag(value: Entry["item"][string], entity: string | null): boolean {
  return entity !== null && value["S"] === entity;
}

export interface Column {
  name: string;
  /** The characters that nine of ten values have at most; all choices have room, as one may be chosen next. */
  usual: number;
  left: number;
  width: number;
}

const FEW = 60; // items of an entity from which its columns keep their widths: a filter may leave less on its first pages

/** The columns of each entity: those of its first page in the order of its fields, what later pages add behind them. A column
 * keeps its place and width once it is there, so nothing jumps, unless the user arranges them. */
export class Columns {
  private seen = new Map<string | null, number>();
  private first = new Map<string | null, number>(); // the number of columns of the first page
  private learned = new Map<string | null, Map<string, number[]>>(); // the characters of the values, the shortest first
  private arranged = new Map<string | null, Column[]>();
  itemHeight = ITEM;
  /** The widths of the key columns that the first page needs. */
  private partition = 210;
  private headings = { partition: 120, sort: 150 };
  private sort = 290;
  private isFitted = false;

  constructor(
    private readonly table = "",
    private hidden = new Set<string>(),
  ) {}

  hide(names: string[]): void {
    this.hidden = new Set(names);
  }

  /** The entities whose columns are known; items of none come last. */
  get entities(): (string | null)[] {
    return [...this.learned.keys()].sort((one, other) => Number(one === null) - Number(other === null));
  }

  /** All columns of an entity, also hidden ones, in the user's order. */
  names(entity: string | null): string[] {
    const names = this.asDeclared(entity);
    const { order } = arrangementOf(this.table, entity);
    const moved = order.filter((each) => names.includes(each));
    // What was never moved stays beside what stood before it.
    const placed = [...moved];
    names.forEach((name, place) => {
      if (moved.includes(name)) return;
      const before = names.slice(0, place).reverse().find((each) => placed.includes(each));
      placed.splice(before === undefined ? 0 : placed.indexOf(before) + 1, 0, name);
    });
    return placed;
  }

  private fields(entity: string | null): Field[] {
    return own(models.value, this.table)?.model?.entities.find((each) => each.name === entity)?.fields ?? [];
  }

  /** An optional field that the first item lacks would else stand behind the keys of the indexes. */
  private asDeclared(entity: string | null): string[] {
    const names = [...(this.learned.get(entity)?.keys() ?? [])];
    const fields = this.fields(entity);
    const places = new Map(fields.map((each, place) => [each.attribute, place]));
    const placeOf = (name: string) => places.get(name) ?? fields.length;
    const first = this.first.get(entity);
    return [...names.slice(0, first).sort((one, other) => placeOf(one) - placeOf(other)), ...names.slice(first)];
  }

  /** The columns that are shown. */
  of(entity: string | null): Column[] {
    let found = this.arranged.get(entity);
    if (found) return found;
    const { hidden, widths } = arrangementOf(this.table, entity);
    let left = 0;
    found = this.names(entity)
      .filter((name) => !hidden.includes(name))
      .map((name) => {
        const lengths = this.learned.get(entity)!.get(name)!;
        const width = Object.hasOwn(widths, name) ? widths[name]! : widthFor(Math.max(name.length + 2, lengths.at(-1)!));
        const choices = this.fields(entity).find((each) => each.attribute === name)?.input.choices ?? [];
        const usual = Math.max(lengths[Math.floor(0.9 * (lengths.length - 1))]!, ...choices.map((each) => each.length));
        const column = { name, usual, left, width };
        left += width;
        return column;
      });
    this.arranged.set(entity, found);
    return found;
  }

  /** Arranges them again, after the user has changed something. */
  arrange(): void {
    this.arranged.clear();
  }

  /** How many columns the user has hidden. */
  get hiddenCount(): number {
    const hidden = (entity: string | null) => arrangementOf(this.table, entity).hidden.filter((each) => this.learned.get(entity)?.has(each)).length;
    return this.entities.reduce((sum, each) => sum + hidden(each), 0);
  }

  /** The width of the widest entity's columns. */
  get width(): number {
    const ends = this.entities.map((each) => this.of(each).at(-1)).map((last) => (last ? last.left + last.width : 0));
    return Math.max(0, ...ends);
  }

  /** The widths of the key columns in a pane: as wide as they need, but they leave half of it for values, or two fifths where
   * their names need that; less where an item is open, whose values stand beside the list. `beside` is what stands beside the
   * sort key in its column. */
  keyWidths(pane: number, beside: number, isItemOpen: boolean): { partition: number; sort: number } {
    const { widths } = arrangementOf(this.table, KEYS);
    const partition = widths["partition"] ?? Math.min(this.partition, Math.max(this.headings.partition, Math.round(pane * (isItemOpen ? 0.28 : 0.2))));
    const most = isItemOpen ? pane - VALUES : Math.floor(pane * 0.52);
    const heading = Math.min(this.headings.sort + beside, Math.floor(pane * 0.6) - partition);
    return { partition, sort: widths["sort"] ?? Math.min(this.sort + beside, Math.max(150, heading, most - partition)) };
  }

  /** Makes the key columns as wide as the first page needs, and their names. */
  fit(partition: string[], partitionNames: string, sort: string[], sortNames: string): void {
    if (this.isFitted || !partition.length) return;
    this.isFitted = true;
    const headingOf = (room: number, names: string, most: number) => Math.min(Math.round(room + names.length * CHARACTER), most);
    this.headings = { partition: headingOf(PARTITION_HEADING, partitionNames, 280), sort: headingOf(SORT_HEADING, sortNames, 420) };
    this.partition = widthOf(partition, Math.max(150, this.headings.partition), 280);
    this.sort = widthOf(sort, this.headings.sort, 420);
  }

  /** Makes room for the keys of items around the range. */
  fitAround(sort: string[]): void {
    this.sort = Math.max(this.sort, widthOf(sort, 0, 420));
  }

  /** Makes the columns that a page adds, each as wide as the widest of its values on that page; after a few items they grow. */
  learn(entries: Entry[]): void {
    const added = new Map<string | null, Map<string, number[]>>();
    for (const { entity, item } of entries) {
      const known = (this.seen.get(entity) ?? 0) < FEW ? null : this.learned.get(entity);
      let columns = added.get(entity);
      if (!columns) added.set(entity, (columns = new Map()));
      for (const [name, value] of Object.entries(item)) {
        if (this.hidden.has(name) || known?.has(name) || isTag(value, entity)) continue;
        const text = shortText(value, 48);
        let lengths = columns.get(name);
        if (!lengths) columns.set(name, (lengths = []));
        lengths.push((shortMoment(text) ?? text).length);
      }
    }
    for (const { entity } of entries) this.seen.set(entity, (this.seen.get(entity) ?? 0) + 1);
    for (const [entity, columns] of added) {
      const learned = this.learned.get(entity) ?? new Map<string, number[]>();
      for (const [name, lengths] of columns)
        learned.set(name, [...(learned.get(name) ?? []), ...lengths].sort((one, other) => one - other));
      this.learned.set(entity, learned);
      if (!this.first.has(entity)) this.first.set(entity, learned.size);
      if (columns.size) this.arranged.delete(entity);
    }
  }
}
