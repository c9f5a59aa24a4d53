/** Keeps the focus: when its element goes or is disabled, what took its place has it next, never the body of the page.
 *
 * In this order: what has just appeared and asks for it, a faulty field, an error, the element itself once it is enabled
 * again, the rest of its form or dialog, the list of items. A confirmation that appears takes the focus at once.
 */

const CONFIRMATION = "[role=alertdialog]";
const ASKING = "[autofocus], [role=alertdialog]";
const FAULTS = ["[aria-invalid=true]", "[role=alert]"];
const GROUPS = "dialog, form, [role=alertdialog], [role=region], [role=group]";
const REST = ["h2, button, a[href]", "input, select, textarea, [tabindex='0']"]; // a field would open the keyboard of a phone

/** What had the focus last, and all that it was in: an element that is removed no longer knows. */
let trail: Element[] = [];
/** What has appeared since then and asks for the focus. */
let appeared: Element[] = [];
/** What had the focus before a notice at the bottom of the page. */
let beforeNotice: Element | null = null;
/** What has the focus while the element that had it is disabled. */
let holder: Element | null = null;
/** The list or the page, if it has the focus for want of something better. */
let fallback: Element | null = null;
let isAsked = false;

export function keepFocus(): void {
  addEventListener("focusin", (event) => note(event.target as Element, event.relatedTarget as Element | null));
  addEventListener("focusout", () => setTimeout(forgetWhatWasLeft));
  const watched = { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled", "class", "hidden", "open"] };
  new MutationObserver((records) => {
    const asking = records.flatMap((each) => [...each.addedNodes]).filter(isAsking);
    appeared.push(...asking);
    const confirmation = within(asking, CONFIRMATION);
    if (confirmation) focusOn(within([confirmation], "[autofocus]") ?? confirmation);
    else if (!isAsked && isLost()) {
      isAsked = true;
      requestAnimationFrame(() => setTimeout(restore)); // after the effects of what was drawn, which may choose better
    }
  }).observe(document.body, watched);
}

/** Gives the focus to the list in which the selected item stands, if nothing else has it. */
export function focusList(): void {
  requestAnimationFrame(() => document.activeElement === document.body && focusOn(listOrMain()));
}

/** Whether nobody has chosen where the focus is: what a view loads late may then take it. */
export function isFocusFree(): boolean {
  const now = document.activeElement;
  return now === null || now === document.body || now === fallback;
}

/** Takes over what stands in a field, as leaving it does, and stays in it. */
export function takeOver(field: EventTarget | null): void {
  if (!(field instanceof HTMLElement)) return;
  field.blur();
  field.focus();
}

/** Whether something in a node asks for the focus; to dialogs the browser gives it itself. */
function isAsking(node: Node): node is Element {
  return node instanceof Element && !node.closest("dialog") && (node.matches(ASKING) || node.querySelector(ASKING) !== null);
}

function note(element: Element, before: Element | null): void {
  if (element === holder) return;
  holder = null;
  if (element !== fallback) fallback = null;
  appeared = [];
  trail = [];
  for (let each: Element | null = element; each; each = each.parentElement) trail.push(each);
  if (element.closest(".notices") && !before?.closest(".notices")) beforeNotice = before;
}

/** A click beside everything leaves an element that stays: nothing is to be restored then. */
function forgetWhatWasLeft(): void {
  if (document.activeElement === document.body && trail[0] && isUsable(trail[0])) trail = [];
}

function isUsable(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled") && element.checkVisibility({ visibilityProperty: true });
}

function isLost(): boolean {
  const now = document.activeElement;
  if (!trail[0]) return false;
  return now === null || now === document.body || now === holder || now.matches(":disabled");
}

function restore(): void {
  isAsked = false;
  if (!isLost()) return;
  const last = trail[0]!;
  const next = successorIn(trail);
  if (next) focusOn(next);
  else if (isUsable(last)) {
    if (holder) focusOn(last); // it is enabled again
  } else if (last.isConnected && last.matches(":disabled")) {
    holder = last.closest(`${GROUPS}, section, aside, main`);
    if (holder) focusOn(holder);
  } else {
    const rest = restOf(trail) ?? (beforeNotice && isUsable(beforeNotice) ? beforeNotice : null);
    fallback = rest ? null : listOrMain();
    focusOn((rest ?? fallback)!);
  }
}

/** What asks for the focus: what is new, or a fault, the nearest first, in the part of the view that had the focus. */
function successorIn(places: Element[]): Element | null {
  const asking = within(appeared, "[autofocus]");
  if (asking) return asking;
  return firstIn(placesLeft(places), FAULTS);
}

/** What the first place has that has any of it: by the first selector, or the next one. */
function firstIn(places: Element[], selectors: string[]): Element | null {
  for (const place of places)
    for (const selector of selectors) {
      const found = within([place], selector);
      if (found) return found;
    }
  return null;
}

/** The first element of a selector that can have the focus, among some elements and what is in them. */
function within(places: Element[], selector: string): Element | null {
  const all = places.flatMap((each) => [...(each.matches(selector) ? [each] : []), ...each.querySelectorAll(selector)]);
  return all.find(isUsable) ?? null;
}

function restOf(places: Element[]): Element | null {
  const groups = placesLeft(places).filter((each) => each.matches(GROUPS));
  return firstIn(groups, REST);
}

function placesLeft(places: Element[]): Element[] {
  const inside = places.slice(1, places.findIndex((each) => each.matches("main, .frame")));
  return inside.filter((each) => each.isConnected && each.checkVisibility());
}

function listOrMain(): Element {
  const list = document.querySelector(".row.item.selected")?.closest(".scroller") ?? document.querySelector(".scroller");
  return list ?? document.getElementById("main")!;
}

function focusOn(element: Element): void {
  if (!element.matches("a, button, input, select, textarea, [tabindex]")) element.setAttribute("tabindex", "-1");
  (element as HTMLElement).focus({ preventScroll: !element.matches("input, select, textarea, [role=alert]") });
}
