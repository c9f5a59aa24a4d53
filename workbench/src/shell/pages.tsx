/** The views of the workbench: each has a name in the address, a title, and a component. Add one here. */

import type { ComponentType } from "preact";

import type { Session, TableInfo } from "../api";
import { DesignPage } from "../design/design_page";
import { MetricsPage } from "../metrics/metrics_page";
import { SimulationPage } from "../simulation/simulation_page";
import { QueriesPage } from "../queries/queries_page";
import { ItemsPage } from "../query/items_page";
import { PartiqlPage } from "../partiql/partiql_page";
import { SnapshotsPage, TableSnapshotsPage } from "../snapshots/snapshots_page";
import { StreamPage } from "../stream/stream_page";
import { StructuresPage } from "../structures/structures_page";
import { TourPage } from "../tour/tour_page";
import { FilesPage } from "../transfer/files_page";
import { LintPage } from "./lint_page";
import { ModelPage } from "./model_page";
import { NewTablePage } from "./new_table_page";

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
  { name: "lint", title: "Lint", shortcut: "5", component: LintPage },
  { name: "files", title: "Files", shortcut: "6", component: FilesPage },
  { name: "snapshots", title: "Snapshots", shortcut: "7", component: TableSnapshotsPage },
];

export interface TopView {
  name: string;
  title: string;
  component: ComponentType;
  /** Whether this session has the view; without it every session has. */
  isThere?: (session: Session) => boolean;
  /** Linked to from elsewhere than the list of views. */
  isApart?: boolean;
}

/** Views without a table: `#/NAME`. */
export const TOP_VIEWS: TopView[] = [
  { name: "tour", title: "Tour", component: TourPage, isThere: (session) => session.tour },
  { name: "design", title: "Design", component: DesignPage, isThere: (session) => session.design !== null },
  { name: "structures", title: "Structures", component: StructuresPage },
  { name: "snapshots", title: "Snapshots", component: SnapshotsPage },
  { name: "simulation", title: "Simulation", component: SimulationPage },
  { name: "metrics", title: "Metrics", component: MetricsPage },
  { name: "queries", title: "Expensive queries", component: QueriesPage },
  { name: "new-table", title: "New table", component: NewTablePage, isApart: true },
];

/** The views that a session has. */
export function topViews(session: Session | null): TopView[] {
  return TOP_VIEWS.filter((each) => !each.isThere || (session !== null && each.isThere(session)));
}
