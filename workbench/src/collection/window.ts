/** A window on the items of a view: pages by real cursors in both directions; far pages are forgotten.
 *
 * A page that is forgotten keeps its height and the cursor before it, so it can be read again where it was. So neither
 * the page nor the server ever holds the whole: at most `MOST` pages have items.
 */

import {
  call,
  execute,
  unitsOf,
  type AttributeValue,
  type CallError,
  type Item,
  type Legend,
  type Recognized,
  type Segment,
} from "../api";
import { noteTypes } from "../query/attribute_types";
import { learn } from "./hues";
import { Columns, layOut, type Row, type Seam } from "./rows";
import { same, shortText } from "../values";
import { actionOf, keyNames, keysOf, positionOf, primaryKey, requestOf, type View } from "../query/view";

const PAGE = 100;
const FIRST_PAGE = 60;
const FILTERED_BYTES = 128 * 1024; // what is filtered is read in larger pages: each request is charged for its last 4 KB whole
const MOST_FILTERED = 2_000; // items of such a page
const MOST = 12;
const AROUND = 3; // items shown before and after a range, which are not part of it
const EMPTY_PAGES = 4; // that a filter may leave without items before the user is asked

export interface Entry {
  item: Item;
  id: string;
  entity: string | null;
  keys: Record<string, Segment[]>;
  /** The partition's values, as one text. */
  group: string;
  partition: AttributeValue[];
  /** Not of the range, but beside it. */
  outside: boolean;
  /** What `isotone verify` would find in it, if a model is loaded. */
  findings: string[];
}

export interface Slot {
  entries: Entry[] | null;
  rows: Row[];
  height: number;
  /** How it was read, so that it can be read again; null for what is beside a range, which is kept. */
  read: { after: Item | null; limit: number; backwards: boolean } | null;
  first: Seam | null;
  last: Seam | null;
  outside: boolean;
  loading: boolean;
}

export interface Totals {
  returned: number;
  scanned: number;
  units: number | null;
  milliseconds: number;
  requests: number;
}

export class CollectionWindow {
  slots: Slot[] = [];
  readonly columns: Columns;
  atStart: boolean;
  atEnd = false;
  loading: "before" | "after" | null = null;
  error: CallError | null = null;
  /** Where a filter has left nothing of several pages; the user decides whether to go on. */
  paused: "before" | "after" | null = null;
  totals: Totals = { returned: 0, scanned: 0, units: 0, milliseconds: 0, requests: 0 };
  /** The ids of the library's own records that were read. */
  readonly ownRecords = new Set<string>();
  /** Height that was put before the items since the view was last drawn. */
  added = 0;
  /** Whether no item at all has the partition key of a range. */
  isCollectionEmpty = false;
  /** Whether the items before and after the range were asked for. */
  private looked = { before: false, after: false };
  private firstKey: Item | null = null;
  private lastKey: Item | null = null;
  private cancel = new AbortController();
  private readonly attributes: string[];

  constructor(
    readonly view: View,
    private readonly changed: () => void,
    readonly around = true,
    /** Whether the library's own records are left out. */
    readonly folds = false,
  ) {
    this.atStart = !(view.start && view.partition);
    this.attributes = keyNames(view.table);
    this.columns = new Columns(view.table.name);
  }

  close(): void {
    this.cancel.abort();
  }

  get height(): number {
    return this.slots.reduce((sum, slot) => sum + slot.height, 0);
  }

  get entries(): Entry[] {
    return this.slots.flatMap((slot) => slot.entries ?? []);
  }

  /** Reads the next page; goes on while a filter leaves nothing. */
  async loadAfter(): Promise<void> {
    if (this.loading || this.atEnd || this.error) return;
    this.loading = "after";
    this.paused = null;
    this.changed();
    try {
      for (let pages = 1; ; pages += 1) {
        const before = this.lastKey;
        const limit = this.limit;
        const page = await this.read(before, limit);
        this.lastKey = page.next;
        this.atEnd = page.next === null;
        if (page.entries.length) {
          this.fit(page.entries);
          this.firstKey ??= positionOf(this.view, page.entries[0]!.item);
          this.append(page.entries, { after: before, limit, backwards: false });
        }
        if (this.atEnd || page.entries.length) break;
        if (pages >= EMPTY_PAGES) {
          this.paused = "after";
          break;
        }
      }
      // Beside what a filter leaves is what it has dropped, which is of the range.
      if (this.view.sort && this.around && !this.view.filters.length) await this.lookAround();
      if (this.view.sort && this.atEnd && !this.totals.scanned)
        this.isCollectionEmpty = !(await this.read(null, 1, { whole: true, counted: false })).entries.length;
    } catch (error) {
      this.fail(error);
    } finally {
      this.loading = null;
      this.evict(this.slots.length - 1);
      this.changed();
    }
  }

  /** Reads the page before the first one: a query against the direction. */
  async loadBefore(): Promise<void> {
    if (this.loading || this.atStart || this.error) return;
    this.loading = "before";
    this.paused = null;
    this.changed();
    try {
      for (let pages = 1; ; pages += 1) {
        const read = { after: this.firstKey, limit: Math.max(PAGE, this.limit), backwards: true };
        const page = await this.read(read.after, read.limit, { backwards: true });
        this.atStart = page.next === null;
        if (page.entries.length) {
          this.prepend(page.entries.reverse(), read);
          break;
        }
        this.firstKey = page.next;
        if (this.atStart) break;
        if (pages >= EMPTY_PAGES) {
          this.paused = "before";
          break;
        }
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.loading = null;
      this.evict(0);
      this.changed();
    }
  }

  /** Reads a page that was forgotten. */
  async restore(slot: Slot): Promise<void> {
    if (slot.entries || slot.loading || !slot.read || this.error) return;
    slot.loading = true;
    try {
      const { after, limit, backwards } = slot.read;
      const page = await this.read(after, limit, { backwards, counted: false });
      slot.entries = backwards ? page.entries.reverse() : page.entries;
      const place = this.slots.indexOf(slot);
      const laid = layOut(slot.entries, this.slots[place - 1]?.last ?? null, this.columns);
      Object.assign(slot, laid);
      this.evict(place);
    } catch (error) {
      this.fail(error);
    } finally {
      slot.loading = false;
      this.changed();
    }
  }

  retry(): void {
    this.error = null;
    void this.loadAfter();
  }

  /** Puts an item that was changed where it is; null removes it. */
  replace(id: string, item: Item | null): void {
    for (const slot of this.slots) {
      const place = slot.entries?.findIndex((each) => each.id === id) ?? -1;
      if (place < 0 || !slot.entries) continue;
      const entry = slot.entries[place]!;
      if (item) {
        const kept = Object.entries(entry.keys).filter(([name]) => same(entry.item[name], item[name]));
        const replaced = { ...entry, item, keys: Object.fromEntries(kept), findings: [] };
        slot.entries[place] = replaced;
        void this.recognize([replaced]);
      }
      else slot.entries.splice(place, 1);
      const index = this.slots.indexOf(slot);
      Object.assign(slot, layOut(slot.entries, this.slots[index - 1]?.last ?? null, this.columns));
    }
    this.changed();
  }

  /** Lays everything out again, for rows of another height. */
  layOutAgain(itemHeight: number): void {
    if (itemHeight === this.columns.itemHeight) return;
    this.columns.itemHeight = itemHeight;
    for (const [place, slot] of this.slots.entries())
      if (slot.entries) Object.assign(slot, layOut(slot.entries, this.slots[place - 1]?.last ?? null, this.columns));
    this.changed();
  }

  private fit(entries: Entry[]): void {
    const keys = keysOf(this.view);
    const partition = entries.map((each) => keys.partition.map(({ name }) => shortText(each.item[name], 60)).join(" "));
    const namesOf = (key: { name: string }[]) => key.map((each) => each.name).join(" · ");
    this.columns.fit(partition, namesOf(keys.partition), this.sortTexts(entries), namesOf(keys.sort.length ? keys.sort : keys.partition));
  }

  /** What stands in the column of the sort key: before the key, the mark of an item that does not fit its model. */
  private sortTexts(entries: Entry[]): string[] {
    const keys = keysOf(this.view);
    const names = (keys.sort.length ? keys.sort : keys.partition).map((each) => each.name);
    return entries.map((each) => (each.findings.length ? "⚠  " : "") + names.map((name) => shortText(each.item[name], 60)).join(" "));
  }

  private prepend(entries: Entry[], read: Slot["read"]): void {
    this.firstKey = positionOf(this.view, entries[0]!.item);
    this.fit(entries);
    const slot = this.slot(entries, read, null);
    this.slots.unshift(slot);
    this.added += slot.height + this.join(1);
  }

  private append(entries: Entry[], read: Slot["read"]): void {
    this.slots.push(this.slot(entries, read, this.slots.at(-1)?.last ?? null));
  }

  private slot(entries: Entry[], read: Slot["read"], previous: Seam | null): Slot {
    const outside = entries[0]?.outside ?? false;
    return { entries, read, outside, loading: false, ...layOut(entries, previous, this.columns) };
  }

  /** Lays out a page again, whose predecessor is new; returns by how much it grew. */
  private join(place: number): number {
    const slot = this.slots[place];
    if (!slot?.entries) return 0;
    const height = slot.height;
    Object.assign(slot, layOut(slot.entries, this.slots[place - 1]?.last ?? null, this.columns));
    return slot.height - height;
  }

  /** Reads a few items beside a range, once, so that the range is seen within its collection. */
  private async lookAround(): Promise<void> {
    const first = this.slots[0]?.entries?.[0];
    if (first && !this.looked.before) {
      this.looked.before = true;
      const key = positionOf(this.view, first.item);
      const page = await this.read(key, AROUND, { backwards: true, whole: true, counted: false });
      if (page.entries.length) {
        this.columns.fitAround(this.sortTexts(page.entries));
        this.slots.unshift(this.slot(page.entries.reverse(), null, null));
        this.join(1);
      }
    }
    const last = this.slots.at(-1)?.entries?.at(-1);
    if (this.atEnd && last && !this.looked.after) {
      this.looked.after = true;
      const key = positionOf(this.view, last.item);
      const page = await this.read(key, AROUND, { whole: true, counted: false });
      if (page.entries.length) {
        this.columns.fitAround(this.sortTexts(page.entries));
        this.append(page.entries, null);
      }
    }
  }

  /** The items of the next page. */
  private get limit(): number {
    const { items, bytes } = this.view.index ?? this.view.table;
    if (this.view.filters.length) return Math.min(MOST_FILTERED, Math.max(PAGE, Math.ceil((FILTERED_BYTES * items) / (bytes || Infinity))));
    return this.slots.length ? PAGE : FIRST_PAGE;
  }

  private async read(
    after: Item | null,
    limit: number,
    { backwards = false, whole = false, counted = true } = {},
  ): Promise<{ entries: Entry[]; next: Item | null }> {
    const { view } = this;
    const request = requestOf(view, { limit, after, backwards, whole });
    const answer = await execute(actionOf(view), request, { keys: this.attributes, whole: this.isWhole, signal: this.cancel.signal });
    const { response } = answer;
    learn(view.table.name, answer.legend);
    const items = response.Items ?? [];
    // What is read again, or beside a range, costs as much, and is not of the result.
    const [returned, scanned] = counted ? [items.length, response.ScannedCount ?? 0] : [0, 0];
    this.count(returned, answer.milliseconds, scanned, unitsOf(response));
    noteTypes(view.table.name, items);
    const all = items.map((item, place) => this.entry(item, answer.recognized?.[place] ?? null, answer.findings?.[place] ?? [], whole));
    const entries = this.folded(all, answer.legend);
    if (answer.recognized === null && items.length) void this.recognize(entries);
    return { entries, next: response.LastEvaluatedKey ?? null };
  }

  /** The entries without the library's own records, if these are folded. */
  private folded(entries: Entry[], legend: Legend | undefined): Entry[] {
    for (const { id, entity } of entries) if (entity !== null && legend?.own.includes(entity)) this.ownRecords.add(id);
    return this.folds ? entries.filter((each) => !this.ownRecords.has(each.id)) : entries;
  }

  private count(returned: number, milliseconds: number, scanned: number, units: number | null): void {
    const { totals } = this;
    this.totals = {
      returned: totals.returned + returned,
      scanned: totals.scanned + scanned,
      units: totals.units === null || units === null ? null : totals.units + units,
      milliseconds: totals.milliseconds + milliseconds,
      requests: totals.requests + 1,
    };
  }

  /** Whether the items have all their attributes. */
  private get isWhole(): boolean {
    return (this.view.index?.projection ?? "ALL") === "ALL";
  }

  private entry(item: Item, recognized: Recognized | null, findings: string[], outside: boolean): Entry {
    const partition = keysOf(this.view).partition.map((each) => item[each.name] ?? { NULL: true });
    return {
      item,
      id: JSON.stringify(primaryKey(this.view.table, item)),
      entity: recognized?.[0] ?? null,
      keys: recognized?.[1] ?? {},
      group: JSON.stringify(partition),
      partition,
      outside,
      findings,
    };
  }

  /** Asks again for what was not known when the items came: the table's model was not inferred yet. */
  private async recognize(entries: Entry[]): Promise<void> {
    const items = entries.map((each) => each.item);
    try {
      const given = { table: this.view.table.name, keys: this.attributes, items, whole: this.isWhole };
      const answer = await call<{ recognized: Recognized[]; legend: Legend; findings?: string[][] }>("keys", given, this.cancel.signal);
      learn(this.view.table.name, answer.legend);
      entries.forEach((entry, place) => {
        [entry.entity, entry.keys] = answer.recognized[place]!;
        entry.findings = answer.findings?.[place] ?? [];
      });
      const kept = new Set(this.folded(entries, answer.legend));
      const gone = new Set(entries.filter((each) => !kept.has(each)));
      for (const [place, slot] of this.slots.entries())
        if (slot.entries?.some((each) => entries.includes(each))) {
          slot.entries = slot.entries.filter((each) => !gone.has(each));
          this.join(place);
        }
      this.changed();
    } catch {
      // the keys are then shown as they are
    }
  }

  private fail(error: unknown): void {
    if (this.cancel.signal.aborted) return;
    this.error = error as CallError;
  }

  /** Forgets the items of the pages that are farthest from one. */
  private evict(near: number): void {
    const full = this.slots.map((slot, place) => ({ slot, place })).filter(({ slot }) => slot.entries && !slot.outside);
    const far = full.sort((one, other) => Math.abs(other.place - near) - Math.abs(one.place - near));
    for (const { slot } of far.slice(0, Math.max(0, full.length - MOST))) {
      if (slot.read === null) continue;
      slot.entries = null;
      slot.rows = [];
    }
  }
}
