/** Light or dark: the system's choice, unless the user made one. */

import { remembered } from "./store";

export type Theme = "system" | "light" | "dark";

export const theme = remembered<Theme>("theme", "system", (value) =>
  ["system", "light", "dark"].includes(value as string),
);

const system = matchMedia("(prefers-color-scheme: dark)");

function apply(): void {
  const dark = theme.value === "dark" || (theme.value === "system" && system.matches);
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}

export function toggleTheme(): void {
  theme.set(isDark() ? "light" : "dark");
}

theme.listen(apply);
system.addEventListener("change", apply);
apply();
