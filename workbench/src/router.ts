/** Every view has an address: `#/t/TABLE/VIEW?name=value`. The address is the state; views change it. */

import { useLayoutEffect, useRef } from "preact/hooks";

import { Store } from "./store";

export interface Route {
  /** The parts of the path: `["t", "Orders", "items"]`. */
  path: string[];
  query: Record<string, string>;
}

export const route = new Store<Route>(parse(location.hash));

addEventListener("hashchange", () => route.set(parse(location.hash)));

function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view. Empty values are left out. */
export function href(path: string[], query: Record<string, string | null | undefined> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(given as [string, string][]).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export function go(path: string[], query: Record<string, string | null | undefined> = {}): void {
  location.hash = href(path, query);
}

/** Whether the component is no longer shown. A layout effect, since others end only after the next view is drawn. */
export function useIsLeft(): { readonly current: boolean } {
  const isLeft = useRef(false);
  useLayoutEffect(() => () => void (isLeft.current = true), []);
  return isLeft;
}

/** Changes values of the address in place; `replace` leaves no entry in the browser's history. The address is read anew, since
 *  `route` has it only after the browser's event: otherwise the second of two changes would undo the first. */
export function change(query: Record<string, string | null | undefined>, { replace = false } = {}): void {
  const now = parse(location.hash);
  const address = href(now.path, { ...now.query, ...query });
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  route.set(parse(location.hash));
}
