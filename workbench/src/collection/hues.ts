/** The colours of entities and key components: the same name has the same colour wherever it is in a table. */

import type { Legend } from "../api";

const HUES = 8;

class Hues {
  private byTable = new Map<string, Map<string, number>>();

  constructor(private readonly first: number) {}

  of(table: string, name: string): number {
    let known = this.byTable.get(table);
    if (!known) this.byTable.set(table, (known = new Map()));
    let hue = known.get(name);
    if (hue === undefined) known.set(name, (hue = (known.size + this.first) % HUES));
    return hue;
  }
}

const components = new Hues(0);
const entities = new Hues(4);

/** Gives the names of a table's model their colours, in the order in which it declares them. */
export function learn(table: string, legend: Legend | undefined): void {
  for (const name of legend?.components ?? []) components.of(table, name);
  for (const name of legend?.entities ?? []) entities.of(table, name);
}

export function hue(table: string, component: string): string {
  return `hue hue-${components.of(table, component)}`;
}

export function entityHue(table: string, entity: string): string {
  return `hue-${entities.of(table, entity)}`;
}
