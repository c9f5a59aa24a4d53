/** Observable state that several components share; `remembered` keeps a value in the browser. */

import { useEffect, useState } from "preact/hooks";

export class Store<T> {
  private listeners = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const listener of [...this.listeners]) listener();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** The store's value; the component is drawn again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useEffect(() => {
    redraw((count) => count + 1); // it may have changed since the component was drawn
    return store.listen(() => redraw((count) => count + 1));
  }, [store]);
  return store.value;
}

/** A value that the browser keeps. Whatever is stored may be of an older version: `check` says if it can be used. */
export function remembered<T>(name: string, initial: T, check: (value: unknown) => boolean): Store<T> {
  const key = `isotone.${name}`;
  let value = initial;
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    if (stored !== null && check(stored)) value = stored as T;
  } catch {
    // private windows have no storage; the initial value is used
  }
  const store = new Store(value);
  store.listen(() => {
    try {
      localStorage.setItem(key, JSON.stringify(store.value));
    } catch {
      // it is then forgotten with the page
    }
  });
  return store;
}
