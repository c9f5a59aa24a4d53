/** Time zones in forms: what a clock in a zone shows at a moment, and the moment of what is typed there. */

import { remembered } from "../store";

export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** The zone in which forms show moments; they are stored in UTC. */
export const zone = remembered<string>("zone", LOCAL_ZONE, isZone);

export function zones(): string[] {
  const all = typeof Intl.supportedValuesOf === "function" ? Intl.supportedValuesOf("timeZone") : [];
  return [...new Set(["UTC", LOCAL_ZONE, ...all])];
}

function isZone(name: unknown): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name as string });
    return typeof name === "string";
  } catch {
    return false;
  }
}

/** Milliseconds by which a zone is ahead of UTC at a moment. */
function ahead(moment: number, name: string): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: name, hourCycle: "h23", era: "short",
    year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  }).formatToParts(moment);
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value ?? 0);
  const shown = Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second"));
  return shown - Math.floor(moment / 1000) * 1000;
}

/** What a clock in a zone shows, for `datetime-local`; empty for a text that is no moment. */
export function wallTime(instant: string, name: string): string {
  const moment = Date.parse(instant);
  if (Number.isNaN(moment)) return "";
  const text = new Date(moment + ahead(moment, name)).toISOString().slice(0, 23);
  return text.replace(/\.000$/, "").replace(/(T\d\d:\d\d):00$/, "$1");
}

/** The moment when a clock in a zone shows this; what is finer than milliseconds stays as it was. */
export function instantOf(wall: string, name: string, before: string | null): string {
  const shown = Date.parse(`${wall}Z`);
  if (Number.isNaN(shown)) return wall;
  let moment = shown - ahead(shown, name);
  moment = shown - ahead(moment, name); // twice, as the first guess may be on the other side of a change of the clock
  const finer = /\.\d{3}(\d+)Z$/.exec(before ?? "")?.[1];
  const text = new Date(moment).toISOString();
  if (finer && before && Date.parse(before) % 1000 === moment % 1000) return text.replace("Z", `${finer}Z`);
  return text.replace(".000Z", "Z");
}
