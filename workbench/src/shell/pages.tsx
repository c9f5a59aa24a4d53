/** The views of the workbench: each has a name in the address, a title, and a component. Add one here. */

import type { ComponentType } from "preact";

import type { TableInfo } from "../api";
import { ItemsPage } from "../query/items_page";
import { PartiqlPage } from "../partiql/partiql_page";
import { StreamPage } from "../stream/stream_page";
import { ModelPage } from "./model_page";

export interface TableView {
  name: string;
  title: string;
  shortcut: string;
  component: ComponentType<{ table: TableInfo }>;
}

/** The tabs of a table: `#/t/TABLE/NAME`. */
export const TABLE_VIEWS: TableView[] = [
  { name: "items", title: "Items", shortcut: "1", component: ItemsPage },
  { name: "partiql", title: "PartiQL", shortcut: "2", component: PartiqlPage },
  { name: "stream", title: "Stream", shortcut: "3", component: StreamPage },
  { name: "model", title: "Keys", shortcut: "4", component: ModelPage },
];

export interface TopView {
  name: string;
  title: string;
  component: ComponentType;
}

/** Views without a table: `#/NAME`. */
export const TOP_VIEWS: TopView[] = [];
