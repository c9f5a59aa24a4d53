/** Light or dark: the system's choice, unless the user made one. */

import { remembered, Store } from "./store";

export type Theme = "system" | "light" | "dark";

export const theme = remembered<Theme>("theme", "system", (value) =>
  ["system", "light", "dark"].includes(value as string),
);

const system = matchMedia("(prefers-color-scheme: dark)");

/** What is shown: for pictures that are not made of the page's colours. */
export const dark = new Store(false);

function apply(): void {
  dark.set(theme.value === "dark" || (theme.value === "system" && system.matches));
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
}

export function isDark(): boolean {
  return dark.value;
}

export function toggleTheme(): void {
  theme.set(isDark() ? "light" : "dark");
}

theme.listen(apply);
system.addEventListener("change", apply);
apply();
