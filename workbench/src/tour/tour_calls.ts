/** The tour's calls (`isotone/demo/tour.py` has the other end), and what the visitor has seen. */

import { call, type CallError, type Item, type Request, type Segment } from "../api";
import { remembered, Store } from "../store";

export interface TourParameter {
  name: string;
  kind: "text" | "integer" | "number" | "time" | "choice";
  default: string;
  choices: string[];
}
export interface Chapter {
  name: string;
  scenario: number;
  group: string;
  title: string;
  story: string;
  parameters: TourParameter[];
  model: string;
  question: string;
  by_hand: string;
  instead: string | null;
  instead_title: string;
  act: string | null;
  act_title: string;
  refuse: string | null;
}
export interface Cost {
  requests: number;
  scanned: number;
  returned: number;
  units: number;
  milliseconds: number;
}
export interface DrawnItem {
  entity: string | null;
  keys: Record<string, Segment[] | null>;
  attributes: Item;
  read: boolean;
  returned: boolean;
}
export interface Gap {
  gap: number;
  read: number;
}
export interface Drawn {
  table: string;
  index: string | null;
  keys: string[];
  is_scan: boolean;
  backwards: boolean;
  total: number;
  is_whole: boolean;
  read: number;
  rows: (DrawnItem | Gap)[];
}
export interface Asked {
  cost: Cost;
  instead: Cost | null;
  refused: string | null;
  answer: { columns: string[]; rows: string[][] } | null;
  request: { action: string; request: Request } | null;
  collections: Drawn[];
}

export const chapters = new Store<Chapter[] | null>(null);
export const problem = new Store<CallError | null>(null);
export const seen = remembered<string[]>("tour", [], Array.isArray);

let asked = false;

export function loadChapters(): void {
  if (asked) return;
  asked = true;
  call<{ chapters: Chapter[] }>("tour").then(
    (found) => chapters.set(found.chapters),
    (error: CallError) => {
      asked = false;
      problem.set(error);
    },
  );
}

export function ask(chapter: string, parameters: Record<string, string>, signal: AbortSignal): Promise<Asked> {
  return call("tour_ask", { chapter, parameters }, signal);
}

export function act(chapter: string): Promise<object> {
  return call("tour_act", { chapter });
}
