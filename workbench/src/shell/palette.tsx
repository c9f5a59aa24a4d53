/** The palette (Ctrl-K): finds tables, indexes, entities, access patterns, saved queries, views and commands. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { readSaved, saved } from "../query/history";
import { withBeside } from "../query/side_pane";
import { change, go, route } from "../router";
import { loadModel, models, refreshTables, session, tables, unlock } from "../session";
import { activeShortcuts, keyName } from "../shortcuts";
import { useStore } from "../store";
import { toggleTheme } from "../theme";
import { count } from "../values";
import { Dialog } from "./dialog";
import { noticeInWords, notify, undoable, undoLast } from "./notices";
import { TABLE_VIEWS, topViews } from "./pages";

interface Command {
  title: string;
  group: string;
  hint?: string;
  /** Other words by which it is found. */
  words?: string;
  run: () => void;
}

/** Keys that move in a list or name a command below; the others are commands of what is shown. */
const MOVES = ["j", "k", "Enter", "Escape", "PageDown", "PageUp", "Home", "End", "Mod+k", "u", "t", "s"];

export function Palette({ onClose }: { onClose: () => void }) {
  const all = useStore(tables);
  const found = useStore(session);
  const { path } = useStore(route);
  const known = useStore(models);
  const kept = useStore(saved());
  const last = useStore(undoable).at(-1);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  // Those of the view below, as they were when the palette was opened.
  const shownShortcuts = useMemo(() => activeShortcuts().filter(({ keys }) => !MOVES.includes(keys[0]!) && !TABLE_VIEWS.some((view) => view.shortcut === keys[0])), []);

  // The models that the user has loaded; those of other tables are known once they were opened.
  useEffect(() => found?.models.filter((each) => all?.some((one) => one.name === each)).forEach(loadModel), [found, all]);
  useEffect(() => void readSaved().catch((error: Error) => notify(error.message, { failed: true })), []);

  const commands = useMemo(() => {
    const table = path[0] === "t" ? path[1] : undefined;
    const listed: Command[] = [];
    if (table)
      for (const view of TABLE_VIEWS)
        listed.push({ title: view.title, group: table, hint: view.shortcut, run: () => go(["t", table, view.name]) });
    for (const each of shownShortcuts)
      listed.push({ title: each.title, group: "Command", hint: keyName(each.keys[0]!), run: each.run });
    if (table) listed.push({ title: `Download ${table} as a file`, words: "save export csv json", group: "Command", hint: "s", run: () => (path[2] ?? "items") === "items" ? change({ save: "yes" }) : go(["t", table, "items"], { save: "yes" }) });
    for (const each of all ?? []) {
      if (table && (path[2] ?? "items") === "items" && each.name !== table)
        listed.push({ title: `${each.name} beside ${table}`, group: "Beside", run: () => withBeside(each.name) });
      listed.push({ title: each.name, group: "Table", hint: `${count(each.items ?? 0)} items`, run: () => go(["t", each.name, "items"]) });
      for (const index of each.indexes ?? [])
        listed.push({
          title: `${each.name} · ${index.name}`,
          group: "Index",
          hint: `${count(index.items)} entries`,
          run: () => go(["t", each.name, "items"], { index: index.name }),
        });
    }
    for (const [name, { model, loaded }] of Object.entries(known))
      for (const entity of model?.entities ?? []) {
        listed.push({ title: entity.name, group: "Entity", hint: name, run: () => go(["t", name, "model"], { entity: entity.name }) });
        for (const pattern of entity.patterns) {
          const title = `${entity.name}.${pattern.name}`;
          listed.push({ title, group: "Access pattern", hint: name, run: () => go(["t", name, "items"], { pattern: title, index: pattern.index }) });
        }
        if (loaded && found?.writable) listed.push({ title: `New ${entity.name}`, group: "Command", hint: name, run: () => go(["t", name, "items"], { new: entity.name }) });
      }
    for (const each of kept) listed.push({ title: each.name ?? each.words, group: "Saved query", hint: each.words, run: () => (location.hash = each.address) });
    if (last) listed.push({ title: `Undo: ${noticeInWords(last)}`, group: "Command", hint: "u", run: undoLast });
    for (const view of topViews(found)) listed.push({ title: view.title, group: "View", run: () => go([view.name]) });
    listed.push({ title: "Light or dark colours", group: "Command", hint: "t", run: toggleTheme });
    listed.push({ title: "Read the list of tables again", group: "Command", run: () => void refreshTables() });
    if (found)
      listed.push({
        title: found.writable ? "Safe mode: refuse writes" : "Safe mode off: allow writes",
        words: "lock unlock read-write",
        group: "Command",
        run: () => void unlock(!found.writable).catch((error: Error) => notify(error.message, { failed: true })),
      });
    return listed;
  }, [all, path, found, known, kept, last]);

  const shown = useMemo(() => ranked(commands, text).slice(0, 60), [commands, text]);
  const pick = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = (chosen + step + shown.length) % Math.max(1, shown.length);
      setChosen(next);
      list.current?.children[next]?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      pick(shown[chosen]);
    }
  };
  return (
    <Dialog title="Search" className="palette" onClose={onClose}>
      <div class="wanted">
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={shown[chosen] ? `command-${chosen}` : undefined}
          aria-label="Search tables, indexes, entities, access patterns and commands"
          placeholder="Tables, indexes, entities, access patterns, commands"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <button class="icon" aria-label="Close" onClick={onClose}>✕</button>
      </div>
      <ul id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {shown.map((command, place) => (
          <li
            key={`${command.group} ${command.title} ${command.hint}`}
            id={`command-${place}`}
            role="option"
            aria-selected={place === chosen}
            onMouseMove={() => setChosen(place)}
            onClick={() => pick(command)}
          >
            <span class="group">{command.group}</span>
            <span class="what">{command.title}</span>
            {command.hint && <span class="hint">{command.hint}</span>}
          </li>
        ))}
      </ul>
      {!shown.length && <p class="none">No table, index, entity, access pattern or command is called “{text}”. Items are found by a query of their table.</p>}
    </Dialog>
  );
}

/** Commands whose name has the words, or the letters in order; the closest together first. */
function ranked(commands: Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return commands;
  const wanted = words.join("");
  return commands
    .map((command) => ({ command, score: score(command.title.toLowerCase(), wanted) ?? inAnyOrder(command, words) ?? byOtherWords(command, words) }))
    .filter(({ score }) => score !== null)
    .sort((one, other) => one.score! - other.score!)
    .map(({ command }) => command);
}

/** Each word is somewhere in the title or its group. */
function inAnyOrder({ title, group }: Command, words: string[]): number | null {
  const whole = `${title} ${group}`.toLowerCase();
  return words.length > 1 && words.every((each) => whole.includes(each)) ? 40 : null;
}

/** Each word is in the title, or is one of the other words for it. */
function byOtherWords({ title, words: others = "" }: Command, words: string[]): number | null {
  const whole = `${title} ${others}`.toLowerCase();
  return words.every((each) => whole.includes(each)) ? 60 : null;
}

function score(title: string, wanted: string): number | null {
  const whole = title.indexOf(wanted);
  if (whole >= 0) return whole === 0 ? -100 : whole;
  let at = -1;
  let gaps = 0;
  for (const letter of wanted) {
    const next = title.indexOf(letter, at + 1);
    if (next < 0) return null;
    gaps += next - at - 1;
    at = next;
  }
  return 50 + gaps;
}
