/** The calls of the design of a model (`isotone/workbench/designs.py`), and the versions of its module. */

import { call, type Session } from "../api";
import { forgetModels, refreshTables, session } from "../session";
import { Store } from "../store";

export interface Finding {
  code: string;
  level: string;
  place: { file: string; line: number; name: string };
  /** The line of the source that it is about. */
  text: string;
  reason: string;
  cost: string;
  fix: string;
}
/** What the sizes of a sheet are, as they are typed; an empty text is the default. */
export interface Sizes {
  items: Record<string, string>;
  per: Record<string, string>;
  rates: Record<string, string>;
  reads: string;
  writes: string;
}
export interface SizedEntity {
  name: string;
  parent: string | null;
  /** Whether its number follows from how many each partition has. */
  is_grouped: boolean;
}
export interface Design {
  name: string;
  part: string;
  parts: string[];
  tables: string[];
  diagram: string;
  /** The diagram without the codes of findings, for a file. */
  plain_diagram: string;
  findings: Finding[];
  drawings: { table: string; index: string | null; svg: string }[];
  /** Why some tables are not drawn. */
  undrawn: string;
  entities: SizedEntity[];
  /** Why there can be no sample, and so no sheet. */
  unsampled: string;
  asked: Sizes;
}
export interface SheetRow {
  name: string;
  table: string;
  cells: string[];
  rate: number;
  is_hot: boolean;
}
export interface Sheet {
  columns: string[];
  rows: SheetRow[];
  entities: Record<string, number>;
  summary: string[];
  csv: string;
  markdown: string;
}

/** Why the module that is being edited cannot be loaded. */
export interface Fault {
  message: string;
  file: string;
  line: number;
  text: string;
}
export interface Followed {
  /** Raised by each version of the module, also by one that cannot be loaded. */
  version: number;
  fault: Fault | null;
}

export const followed = new Store<Followed>({ version: 0, fault: null });

/** Waits for the next version of the module, and reads again what depends on it. */
export async function follow(signal: AbortSignal): Promise<void> {
  const before = followed.value.version;
  const next = await call<Followed>("design_wait", { version: before }, signal);
  if (signal.aborted || next.version === before) return;
  if (before && !next.fault) {
    forgetModels();
    const [found] = await Promise.all([call<Session>("session", {}, signal), refreshTables()]);
    session.set(found);
  }
  followed.set(next);
}
