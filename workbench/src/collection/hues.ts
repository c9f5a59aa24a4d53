/** The colours of entities and key components: the same name has the same colour in a table, at every visit. */

import type { Legend } from "../api";

const HUES = 8;

/** The colours follow from the names. Of those in a table's model, two that would have the same colour are kept apart. */
class Hues {
  private byTable = new Map<string, Map<string, number>>();

  constructor(private readonly first: number) {}

  of(table: string, name: string): number {
    return this.byTable.get(table)?.get(name) ?? this.wanted(name);
  }

  /** Gives the names of a model their colours. The order of the names does not matter. */
  learn(table: string, names: string[]): void {
    const given = new Map<string, number>();
    const free = new Set(Array.from({ length: HUES }, (_, hue) => hue));
    for (const name of [...new Set(names)].sort()) {
      let hue = this.wanted(name);
      if (free.size) while (!free.has(hue)) hue = (hue + 1) % HUES;
      free.delete(hue);
      given.set(name, hue);
    }
    this.byTable.set(table, given);
  }

  private wanted(name: string): number {
    let hash = this.first;
    for (const letter of name) hash = (hash * 33 + letter.codePointAt(0)!) % 65_521;
    return hash % HUES;
  }
}

const components = new Hues(0);
const entities = new Hues(4);

export function learn(table: string, legend: Pick<Legend, "entities" | "components"> | undefined): void {
  if (!legend) return;
  components.learn(table, legend.components);
  entities.learn(table, legend.entities);
}

export function hue(table: string, component: string): string {
  return `hue hue-${components.of(table, component)}`;
}

export function entityHue(table: string, entity: string): string {
  return `hue-${entities.of(table, entity)}`;
}
