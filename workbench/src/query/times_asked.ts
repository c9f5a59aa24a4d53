/** What a day in a range of times asks for, in words and in a filter; `isotone/workbench/patterns.py` has the same rule. */

import type { Model, Parameter } from "../api";

export const IS_DAY = /^\d{4}-\d\d-\d\d$/;
export const HAS_ZONE = /(?:[Zz]|[+-]\d\d:?\d\d)$/;

/** Whether a day at this place of a condition means its last instant; patterns.py has the same rule. */
export function isEndOfDay(operator: string, place: number): boolean {
  return operator === "between" ? place === 1 : operator === "<=" || operator === ">";
}

/** Whether what is equal to this text is all of a day: its first instant alone would find next to nothing. */
export function isWholeDay(operator: string, text: string): boolean {
  return (operator === "=" || operator === "==") && isDay(text);
}

const SENTENCES: Record<string, (times: string[]) => string> = {
  between: ([from, to]) => `from ${from} to ${to}`,
  "<=": ([to]) => `up to ${to}`,
  "<": ([to]) => `before ${to}`,
  ">": ([from]) => `after ${from}`,
  ">=": ([from]) => `from ${from}`,
};

/** What a range of times asks for; null if no day is in it, as a full time says itself what it is. */
export function timesInWords(parameter: Pick<Parameter, "name" | "zone">, operator: string, texts: string[]): string | null {
  const sentence = SENTENCES[operator];
  const given = texts.slice(0, operator === "between" ? 2 : 1);
  if (!parameter.zone || !given.every(isTime) || !given.some(isDay)) return null;
  if (isWholeDay(operator, given[0]!) || (operator === "between" && given[0] === given[1])) return `${parameter.name} on all of ${shownDay(given[0]!)}, ${parameter.zone}`;
  if (!sentence) return null;
  const times = given.map((text, place) => (isDay(text) ? `the ${isEndOfDay(operator, place) ? "end" : "beginning"} of ${shownDay(text)}` : text));
  return `${parameter.name} ${sentence(times)}, ${parameter.zone}`;
}

/** The attributes of a model that are times, which are stored as texts in UTC. */
export function timesOf(model: Model["model"]): string[] {
  return model?.entities.flatMap((each) => each.fields.filter((field) => field.input.kind === "instant").map((field) => field.attribute)) ?? [];
}

/** The text with which a filter compares a time: the end of a day is after all texts of it, whatever their precision. */
export function comparedText(operator: string, place: number, text: string): string {
  return isDay(text) && isEndOfDay(operator, place) ? `${text}T24:00:00Z` : text;
}

function isTime(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}

function isDay(text: string): boolean {
  return IS_DAY.test(text) && !Number.isNaN(Date.parse(text));
}

function shownDay(text: string): string {
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" }).format(Date.parse(text));
}
