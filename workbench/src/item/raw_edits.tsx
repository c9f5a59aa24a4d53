/** Warns before an edit of single attributes that breaks what the model derives from them (keys, counts). */

import { models } from "../session";
import { own } from "../values";
import { changedNames, type Change } from "./changes";

export interface RawEdit extends Change {
  entity: string | null;
}

/** The sentences about these changes, each once; none if nothing breaks, or no model is loaded. */
export function consequencesOf(edits: RawEdit[]): string[] {
  return [...new Set(edits.flatMap(ofOne))];
}

function ofOne({ table, entity, ...change }: RawEdit): string[] {
  const known = own(models.value, table.name);
  const found = known?.loaded ? known.model?.entities.find((each) => each.name === entity) : undefined;
  if (!found || !change.before) return [];
  if (!change.after) return found.raw_edits.deleted;
  const names = changedNames({ table, ...change });
  const broken = names.flatMap((name) => (own(found.raw_edits.attributes, name) ?? []).map((each) => `${name}: ${each}`));
  return names.length ? [...broken, ...found.raw_edits.always] : [];
}

export function Consequences({ of }: { of: string[] }) {
  return (
    <ul class="consequences">
      {of.map((each) => (
        <li key={each}>{each}</li>
      ))}
    </ul>
  );
}
