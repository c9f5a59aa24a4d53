/** The keyboard: one listener, and the shortcuts that views add while they are shown. */

import { useLayoutEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** As the event names it: `"k"`, `"ArrowDown"`, `"Mod+k"` (⌘ on a Mac, Ctrl elsewhere). */
  keys: string[];
  title: string;
  /** `event` is missing where the palette runs it. */
  run: (event?: KeyboardEvent) => void;
  /** Also while the user types into a field. */
  typing?: boolean;
}

interface Latest {
  current: Shortcut[];
}

const active: Latest[] = [];

/** The shortcuts that work now, those of the innermost views first. */
export function activeShortcuts(): Shortcut[] {
  return [...active].reverse().flatMap((each) => each.current);
}

/** Adds shortcuts while a component is shown; they are always those of its last drawing. */
export function useShortcuts(shortcuts: Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  // A layout effect, so that a key works as soon as what it acts on is seen.
  useLayoutEffect(() => {
    active.push(latest);
    return () => void active.splice(active.indexOf(latest), 1);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("input, textarea, select, [contenteditable]") || target.shadowRoot !== null;
}

/** Whether the browser does something with the key itself: it follows a link, presses a button. */
function isPressing(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" && event.key !== " ") return false;
  return event.target instanceof Element && event.target.closest("a[href], button, summary, label") !== null;
}

/** Whether a letter may have been meant for a form: the focus is on one of its buttons, or on the one that opens it just now, or a
 * click beside it has taken it.
 * Esc leaves the form for the keys of the page. */
function isForForm(event: KeyboardEvent): boolean {
  if (event.key.length !== 1 || event.metaKey || event.ctrlKey || event.altKey) return false;
  const at = event.target instanceof Element ? event.target : document.body;
  return at.closest(".item-form, [aria-busy='true']") !== null || (document.querySelector(".item-form[data-typed]:not([data-left])") !== null && at.closest(".scroller") === null);
}

function nameOf(event: KeyboardEvent): string {
  const mod = event.metaKey || event.ctrlKey ? "Mod+" : "";
  const alt = event.altKey ? "Alt+" : "";
  return `${mod}${alt}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || isPressing(event) || isForForm(event) || document.querySelector("dialog[open]")) return;
  const name = nameOf(event);
  const found = activeShortcuts().find(
    (each) => each.keys.includes(name) && (each.typing || !isTyping(event.target)),
  );
  if (found === undefined) return;
  event.preventDefault();
  found.run(event);
});

export const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** A key as the keyboard shows it. */
export function keyName(key: string): string {
  return key
    .replace(/^ $/, "Space")
    .replace("Mod+", isMac ? "⌘" : "Ctrl ")
    .replace("ArrowDown", "↓")
    .replace("ArrowUp", "↑")
    .replace("Escape", "Esc")
    .replace("Enter", "↵")
    .replace(/ ([a-z])$/, (_, letter: string) => ` ${letter.toUpperCase()}`)
    .replace(/⌘([a-z])$/, (_, letter: string) => `⌘${letter.toUpperCase()}`);
}
