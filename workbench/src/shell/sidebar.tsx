/** The tables at the left, with indexes, counts and sizes, and their filter (`/`); the lock of safe mode. */

import { useEffect, useRef, useState } from "preact/hooks";

import { call, reachable, type ListedTable } from "../api";
import { useRepeated } from "../repeated";
import { go, href, route } from "../router";
import { refreshTables, session, tables, unlock } from "../session";
import { keyName, useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { isDark, theme, toggleTheme } from "../theme";
import { count, size } from "../values";
import { notify } from "./notices";
import { topViews } from "./pages";

interface Props {
  onSearch: () => void;
  onHelp: () => void;
  /** Somebody goes elsewhere from here. */
  onGo: () => void;
}

export function Sidebar({ onSearch, onHelp, onGo }: Props) {
  const all = useStore(tables);
  const found = useStore(session);
  const { path, query } = useStore(route);
  const [filter, setFilter] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: ["/"], title: "Filter tables", run: () => input.current?.focus() }]);

  const shown = (all ?? []).filter((each) => each.name.toLowerCase().includes(filter.toLowerCase()));
  return (
    <aside class="sidebar" aria-label="Tables" onClick={(event) => (event.target as Element).closest("a") && onGo()}>
      <div class="brand">
        <a href="#/" class="logo">
          <Mark /> <span>Isotone</span>
        </a>
        <button class="icon" aria-label="Search" title={`Search (${keyName("Mod+k")})`} onClick={onSearch}>
          <Glyph d="M7 2a5 5 0 1 0 3 9l3.5 3.5M7 2a5 5 0 0 1 3 9" />
        </button>
      </div>
      {topViews(found).length > 0 && (
        <nav class="top-views" aria-label="Views">
          {topViews(found).filter((each) => !each.isApart).map((each) => (
            <a
              key={each.name}
              href={href([each.name])}
              class={path[0] === each.name ? "current" : ""}
              aria-current={path[0] === each.name ? "page" : undefined}
            >
              {each.title}
            </a>
          ))}
        </nav>
      )}
      <div class="table-filter">
        <input
          ref={input}
          type="search"
          placeholder="Filter tables"
          aria-label="Filter tables"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && filter && shown[0]) {
              go(["t", shown[0].name, "items"]);
              onGo();
            } else if (event.key !== "Escape") return;
            setFilter("");
            event.currentTarget.blur();
          }}
        />
        <kbd>/</kbd>
      </div>
      <nav class="tables" aria-label="Tables">
        {all === null ? (
          Array.from({ length: 6 }, (_, place) => <div class="bone" key={place} />)
        ) : (
          <ul>
            {shown.map((each) => (
              <TableEntry key={each.name} table={each} isCurrent={path[0] === "t" && path[1] === each.name} index={query["index"] ?? null} />
            ))}
          </ul>
        )}
        {all !== null && (
          <a class="new" href={href(["new-table"])} aria-current={path[0] === "new-table" ? "page" : undefined}>
            + New table
          </a>
        )}
        {all !== null && !shown.length && all.length > 0 && <p class="none">No table has “{filter}” in its name.</p>}
      </nav>
      <Connection onHelp={onHelp} />
    </aside>
  );
}

function TableEntry({ table, isCurrent, index }: { table: ListedTable; isCurrent: boolean; index: string | null }) {
  const indexes = table.indexes ?? [];
  return (
    <li class={isCurrent ? "table current" : "table"}>
      <a href={href(["t", table.name, "items"])} aria-current={isCurrent && !index ? "page" : undefined}>
        <span class="name">{table.name}</span>
        <span class="count" title={`${count(table.items ?? 0)} items, ${size(table.bytes ?? 0)}`}>
          {short(table.items ?? 0)}
        </span>
      </a>
      {isCurrent && indexes.length > 0 && (
        <ul>
          {indexes.map((each) => (
            <li key={each.name}>
              <a
                href={href(["t", table.name, "items"], { index: each.name })}
                aria-current={index === each.name ? "page" : undefined}
              >
                <span class="name">{each.name}</span>
                <span class="count" title={`${count(each.items)} entries, ${size(each.bytes)}`}>
                  {short(each.items)}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function short(number: number): string {
  if (number < 10_000) return count(number);
  if (number < 1_000_000) return `${Math.round(number / 1000)}k`;
  return `${(number / 1_000_000).toFixed(number < 10_000_000 ? 1 : 0)}M`;
}

const LOOK = 5_000; // milliseconds after which it is asked whether the server is there

function Connection({ onHelp }: { onHelp: () => void }) {
  const found = useStore(session);
  useStore(theme);
  const isThere = useStore(reachable);
  const [, redraw] = useState(0);
  useEffect(() => redraw((number) => number + 1), []);
  useRepeated(LOOK, async (signal) => {
    await call("session", {}, signal).catch(() => undefined); // `reachable` has it
    return !signal.aborted;
  }, []);
  const lock = async () => {
    if (!found) return;
    try {
      await unlock(!found.writable);
    } catch (error) {
      notify((error as Error).message, { failed: true });
      return;
    }
    notify(found.writable ? "Safe mode: nothing can be written" : "Unlocked: items and tables can be changed");
  };
  return (
    <footer class="connection">
      <div class="target" title={found?.target}>
        <span class={`dot${!isThere ? " gone" : found ? " live" : ""}`} aria-hidden="true" />
        <span class="address" role="status">{!isThere ? "the server does not answer" : found ? (found.target === ":memory:" ? "in memory" : found.target) : "connecting…"}</span>
      </div>
      <div class="tools">
        <button
          class={found && !found.writable ? "lock locked" : "lock"}
          aria-pressed={found ? !found.writable : false}
          onClick={() => void lock()}
          title={found?.writable ? "Everything can be changed. Click for safe mode." : "Safe mode: reads only. Click to unlock."}
        >
          <Glyph d={found && !found.writable ? "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5" : "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 4.8-1"} />
          {found && !found.writable ? "Safe mode" : "Read-write"}
        </button>
        <span class="space" />
        <button class="icon" aria-label="Read the list of tables again" title="Read the list of tables again" onClick={() => void refreshTables()}>
          <Glyph d="M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3" />
        </button>
        <button class="icon" aria-label={isDark() ? "Light colours" : "Dark colours"} title="Light or dark (t)" onClick={toggleTheme}>
          <Glyph d="M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z" />
        </button>
        <button class="icon" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)" onClick={onHelp}>
          ?
        </button>
      </div>
    </footer>
  );
}

function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" class="mark-back" />
      <rect x="7" y="8" width="5" height="16" rx="1.5" class="mark" />
      <rect x="15" y="8" width="10" height="4" rx="1.5" class="mark" />
      <rect x="15" y="14" width="7" height="4" rx="1.5" class="mark" />
      <rect x="15" y="20" width="9" height="4" rx="1.5" class="mark" />
    </svg>
  );
}

export function Glyph({ d }: { d: string }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}
