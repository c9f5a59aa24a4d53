/** Attribute values: their types, which texts are numbers, text for people, and typed text for addresses and forms. */

import type { AttributeType, AttributeValue, Item } from "./api";

export const TYPES: Record<AttributeType, string> = {
  S: "string",
  N: "number",
  B: "binary",
  BOOL: "boolean",
  NULL: "null",
  SS: "string set",
  NS: "number set",
  BS: "binary set",
  L: "list",
  M: "map",
};

/** A member of an object that others named: `constructor` may be the name of an attribute. */
export function own<T>(members: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

export function typeOf(value: AttributeValue): AttributeType {
  return (Object.keys(value)[0] ?? "NULL") as AttributeType;
}

/** Why something in DynamoDB JSON is no value, however deep; null if it is one. What its texts say is not looked at. */
export function wrongForm(value: unknown): string | null {
  const members = isObject(value) ? Object.entries(value) : [];
  if (members.length !== 1) return 'write it with its type, as {"S": "text"}';
  const [type, inner] = members[0]!;
  switch (type) {
    case "S":
    case "N":
    case "B":
      return typeof inner === "string" ? null : `${type} needs a text in quotes`;
    case "BOOL":
      return typeof inner === "boolean" ? null : "BOOL needs true or false";
    case "NULL":
      return inner === true ? null : "NULL needs true";
    case "SS":
    case "NS":
    case "BS":
      return Array.isArray(inner) && inner.every((each) => typeof each === "string") ? null : `${type} needs a list of texts in quotes`;
    case "L":
      return Array.isArray(inner) ? (inner.map(wrongForm).find(Boolean) ?? null) : "L needs a list of values";
    case "M":
      return isObject(inner) ? (Object.values(inner).map(wrongForm).find(Boolean) ?? null) : "M needs an object of values";
    default:
      return `${type} is no type: write ${Object.keys(TYPES).join(", ")}`;
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** One line that shows a value; long ones are cut, for the tables of items. */
export function shortText(value: AttributeValue | undefined, most = 200): string {
  if (value === undefined) return "";
  const type = typeOf(value);
  const inner = value[type];
  switch (type) {
    case "S":
      return cut(inner as string, most);
    case "N":
      return inner as string;
    case "B":
      return `${cut(inner as string, 24)} (${bytesOf(inner as string)} B)`;
    case "BOOL":
      return inner ? "true" : "false";
    case "NULL":
      return "null";
    case "SS":
    case "NS":
    case "BS":
      return cut(`{${(inner as string[]).slice(0, 20).join(", ")}}`, most);
    case "L":
      return cut(`[${(inner as AttributeValue[]).slice(0, 20).map((each) => shortText(each, 40)).join(", ")}]`, most);
    case "M": {
      const members = Object.entries(inner as Item).slice(0, 20);
      return cut(`{${members.map(([name, each]) => `${name}: ${shortText(each, 40)}`).join(", ")}}`, most);
    }
  }
}

const MOMENT = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)$/;

/** A moment without its `T` and without what is finer than a second; null for another text. */
export function shortMoment(text: string): string | null {
  const found = MOMENT.exec(text);
  if (!found) return null;
  const [, day, minute, second = "", fraction = "", zone] = found;
  const seconds = second === ":00" && /^(\.0+)?$/.test(fraction) ? "" : second;
  return `${day} ${minute}${seconds}${zone}`;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

export function bytesOf(base64: string): number {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** A key's value as one text: `S:ann`. */
export function typed(value: AttributeValue): string {
  const type = typeOf(value);
  return `${type}:${String(value[type])}`;
}

/** The value that `typed` wrote; null for anything else. */
export function untyped(text: string | undefined): AttributeValue | null {
  const match = /^(S|N|B):(.*)$/s.exec(text ?? "");
  return match ? { [match[1]!]: match[2]! } : null;
}

export function same(one: AttributeValue | undefined, other: AttributeValue | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/** Why a text is no number of DynamoDB; null if it is one. Numbers stay texts: they may have 38 digits. */
export function wrongNumber(text: string): string | null {
  if (!NUMBER.test(text.trim())) return `not a number: write it as ${/^[+-]?\d+,\d+$/.test(text.trim()) ? text.trim().replace(",", ".") : "12.5"}`;
  const digits = text.trim().replace(/[eE].*$/, "").replace(/[+\-.]/g, "").replace(/^0+/, "").replace(/0+$/, "");
  return digits.length > 38 ? `${digits.length} digits; DynamoDB keeps 38` : null;
}

const numbers = new Intl.NumberFormat("en-US");

export function count(value: number): string {
  return numbers.format(value);
}

export function size(bytes: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function plural(number: number, word: string, words = `${word}s`): string {
  return `${count(number)} ${number === 1 ? word : words}`;
}
