/** The frame: tables at the left, the tabs (`1` to `7`) and a view at the right, the palette above both. */

import { useEffect, useState } from "preact/hooks";

import { isDescribed } from "../api";
import { failure, loadModel, refreshTable, refreshTables, session, tables } from "../session";
import { go, href, route } from "../router";
import { useRepeated } from "../repeated";
import { keyName, useShortcuts } from "../shortcuts";
import { remembered, useStore } from "../store";
import { toggleTheme } from "../theme";
import { follow, followed, type Fault } from "../design/design_calls";
import { Failure } from "./failure";
import { Help } from "./help";
import { Notices, UndoButton, undoLast } from "./notices";
import { nearest, NotFound } from "./not_found";
import { Palette } from "./palette";
import { TABLE_VIEWS, topViews } from "./pages";
import { Sidebar } from "./sidebar";
import { Welcome } from "./welcome";

const AGAIN = 200; // milliseconds between two questions for a new version of a module

export const sidebarOpen = remembered<boolean>("sidebar", true, (value) => typeof value === "boolean");

export function App() {
  const { path } = useStore(route);
  const all = useStore(tables);
  const found = useStore(session);
  const problem = useStore(failure);
  const isOpen = useStore(sidebarOpen);
  const [overlay, setOverlay] = useState<"palette" | "help" | null>(null);
  const [drawer, setDrawer] = useState(false); // the sidebar of a narrow window

  useShortcuts(
    [
      { keys: ["Mod+k"], title: "Search tables, indexes and commands", typing: true, run: () => setOverlay("palette") },
      { keys: ["?"], title: "Keyboard shortcuts", run: () => setOverlay("help") },
      { keys: ["Mod+b"], title: "Show or hide the tables", typing: true, run: () => sidebarOpen.update((open) => !open) },
      { keys: ["t"], title: "Light or dark", run: toggleTheme },
      { keys: ["u", "Mod+z"], title: "Undo the last change", run: undoLast },
    ],
  );

  const listed = path[0] === "t" ? (all?.find((each) => each.name === path[1]) ?? null) : null;
  const table = listed && isDescribed(listed) ? listed : null;
  const view = TABLE_VIEWS.find((each) => each.name === (path[2] ?? "items")) ?? null;
  const top = topViews(found).find((each) => each.name === path[0]);
  const name = listed?.name;
  const { version, fault } = useStore(followed);

  const isLive = found?.design?.live === true;
  useRepeated(
    AGAIN,
    async (signal) => {
      if (isLive) await follow(signal).catch(() => undefined); // `reachable` has it
      return isLive && !signal.aborted;
    },
    [isLive],
  );

  useEffect(() => {
    if (!name) return;
    loadModel(name);
    void refreshTable(name);
  }, [name, path[2], version]);

  useEffect(() => {
    document.querySelector(".tab.current")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [name, path[2]]);

  useEffect(() => {
    document.title = name ? `${name} · Isotone` : (top?.title ?? "Isotone workbench");
  }, [name, top]);

  // A start without an address shows the tour, or the first table: an empty page teaches nothing.
  useEffect(() => {
    if (path.length || !found) return;
    if (found.tour) go(["tour"]);
    else if (found.design?.live) go(["design"]);
    else if (all?.length) go(["t", all[0]!.name, "items"]);
  }, [path.length, all, found]);

  useShortcuts(
    name
      ? TABLE_VIEWS.map((each) => ({
          keys: [each.shortcut],
          title: each.title,
          run: () => go(["t", name, each.name]),
        }))
      : [],
  );

  const close = () => setOverlay(null);
  return (
    <div class={`frame${isOpen ? "" : " sidebar-closed"}${drawer ? " drawer-open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the items
      </a>
      <Sidebar onSearch={() => { setDrawer(false); setOverlay("palette"); }} onHelp={() => setOverlay("help")} onGo={() => setDrawer(false)} />
      <div class="scrim" onClick={() => setDrawer(false)} />
      <main id="main" tabIndex={-1}>
        <header class="top">
          <button class="icon menu" aria-label="Tables" onClick={() => setDrawer(true)}>
            ☰
          </button>
          {name ? (
            <>
              <h1 class="title">{name}</h1>
              <nav class="tabs" aria-label="Views of the table">
                {TABLE_VIEWS.map((each) => (
                  <a
                    key={each.name}
                    href={href(["t", name, each.name])}
                    class={each === view ? "tab current" : "tab"}
                    aria-current={each === view ? "page" : undefined}
                  >
                    {each.title}
                  </a>
                ))}
              </nav>
            </>
          ) : (
            <h1 class="title">{top?.title ?? "Workbench"}</h1>
          )}
          <span class="space" />
          <UndoButton />
          <button class="search" onClick={() => setOverlay("palette")}>
            <span>Search</span> <kbd>{keyName("Mod+k")}</kbd>
          </button>
        </header>
        <div class="view">
          {problem && (
            <div class={all ? "problem" : "over"}>
              <Failure error={problem} onRetry={() => void refreshTables().then(() => (name ? refreshTable(name) : undefined))} />
            </div>
          )}
          {fault && <FaultOfModule fault={fault} hasGood={Boolean(all?.length)} />}
          {table && view ? (
            <view.component key={`${table.name} ${version}`} table={table} />
          ) : name && !view ? (
            <NoTableView table={name} view={path[2] ?? ""} />
          ) : name ? (
            <div class="document"><div class="bone" /><div class="bone" /><div class="bone" /></div>
          ) : top ? (
            <top.component />
          ) : path[0] === "t" && all ? (
            <NoTable name={path[1] ?? ""} />
          ) : path.length && path[0] !== "t" && found && all ? (
            <NoView name={path.join("/")} />
          ) : all && !all.length ? (
            <Welcome />
          ) : null}
        </div>
      </main>
      {overlay === "palette" && <Palette onClose={close} />}
      {overlay === "help" && <Help onClose={close} />}
      <Notices />
    </div>
  );
}

/** What is wrong with the module that is being edited; the last good version stays below. */
function FaultOfModule({ fault, hasGood }: { fault: Fault; hasGood: boolean }) {
  return (
    <div class="fault" role="alert">
      <strong>{fault.file ? `${fault.file}:${fault.line}` : "The module"}</strong>
      <p>{fault.message}</p>
      {fault.text && <code>{fault.text}</code>}
      {hasGood && <p class="stays">The page shows the last version without an error.</p>}
    </div>
  );
}

function NoTable({ name }: { name: string }) {
  const names = (useStore(tables) ?? []).map((each) => each.name);
  if (!names.length) return <Welcome />;
  return (
    <NotFound
      title={`There is no table ${name}`}
      there="Tables"
      links={nearest(name, names).map((each) => ({ title: each, path: ["t", each, "items"] }))}
    >
      It may have been deleted, or is in another region.{" "}
      <button class="link" onClick={() => void refreshTables()}>Look again</button>
    </NotFound>
  );
}

function NoTableView({ table, view }: { table: string; view: string }) {
  return (
    <NotFound
      title={`${table} has no view ${view}`}
      there={`Views of ${table}`}
      links={TABLE_VIEWS.map((each) => ({ title: each.title, path: ["t", table, each.name] }))}
    >
      The address may be of another version of the workbench.
    </NotFound>
  );
}

function NoView({ name }: { name: string }) {
  const views = topViews(useStore(session)).map((each) => ({ title: each.title, path: [each.name] }));
  const names = (useStore(tables) ?? []).map((each) => ({ title: each.name, path: ["t", each.name, "items"] }));
  return (
    <NotFound title={`Nothing is at ${name}`} there="Views and tables" links={[...views, ...names]}>
      The address may be incomplete, or of another version of the workbench.
    </NotFound>
  );
}
