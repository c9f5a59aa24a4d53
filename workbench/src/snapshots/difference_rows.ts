/** The differences of a comparison as a list: pages are read when they are near, and forgotten when they are far. */

import { call, CallError, type Recognized, type Segment } from "../api";
import { learn } from "../collection/hues";
import type { Legend } from "../api";
import type { Comparison, Row } from "./snapshot_calls";

const PAGE = 100;
const PAGES = 12; // that are kept

export interface Shown extends Row {
  /** The components of its key, where a model is known. */
  segments: Record<string, Segment[]>;
}

export class DifferenceRows {
  private pages = new Map<number, Shown[]>();
  private asked = new Set<number>();
  private isClosed = false;
  error: CallError | null = null;

  constructor(
    private readonly comparison: Comparison,
    readonly list: string,
    readonly size: number,
    private readonly isRecognized: boolean,
    private readonly redraw: () => void,
  ) {}

  close(): void {
    this.isClosed = true;
  }

  at(place: number): Shown | null {
    return this.pages.get(Math.floor(place / PAGE))?.[place % PAGE] ?? null;
  }

  /** Reads what is between two places, and a page around them. */
  want(from: number, to: number): void {
    const first = Math.max(0, Math.floor((from - PAGE / 2) / PAGE));
    const last = Math.min(Math.floor((this.size - 1) / PAGE), Math.floor((to + PAGE / 2) / PAGE));
    for (let page = first; page <= last; page += 1) if (!this.pages.has(page) && !this.asked.has(page)) void this.read(page);
    for (const page of [...this.pages.keys()]) {
      if (this.pages.size <= PAGES) break;
      if (page < first - 1 || page > last + 1) this.pages.delete(page);
    }
  }

  retry(): void {
    this.error = null;
    this.redraw();
  }

  private async read(page: number): Promise<void> {
    if (this.error) return;
    this.asked.add(page);
    try {
      const given = { id: this.comparison.id, list: this.list, at: page * PAGE, count: PAGE };
      const { rows } = await call<{ rows: Row[] }>("comparison_rows", given);
      if (this.isClosed) return;
      this.pages.set(page, rows.map((each) => ({ ...each, segments: {} })));
      this.redraw();
      if (this.isRecognized) await this.recognize(page, rows);
    } catch (failure) {
      this.error = failure as CallError;
    } finally {
      this.asked.delete(page);
    }
    if (!this.isClosed) this.redraw();
  }

  /** Adds the components of the keys: what is drawn already stays if they are not known. */
  private async recognize(page: number, rows: Row[]): Promise<void> {
    const { table, keys } = this.comparison;
    const given = { table, keys, items: rows.map((each) => each.key) };
    const found = await call<{ recognized?: Recognized[]; legend?: Legend }>("keys", given).catch(() => null);
    if (!found?.recognized || !this.pages.has(page)) return;
    learn(table, found.legend);
    this.pages.set(page, rows.map((each, place) => ({ ...each, segments: found.recognized?.[place]?.[1] ?? {} })));
  }
}
