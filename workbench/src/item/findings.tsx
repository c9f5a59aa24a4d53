/** The mark ⚠ and Repair: what does not fit an item's model, as `isotone verify` finds it, and the way to repair it. */

import type { Finding } from "./edit_calls";

interface Props {
  findings: Finding[];
  isEditable: boolean;
  working: boolean;
  /** Writes the item again, without the attributes that the entity does not declare. */
  onRepair: (without: string[]) => void;
  /** Opens the form, for values that a person must give. */
  onEdit: () => void;
}

export function Findings({ findings, isEditable, working, onRepair, onEdit }: Props) {
  const wrong = findings.filter((each) => !each.notice);
  if (!wrong.length) return null;
  // What nobody can know is not written again.
  const isUnknown = wrong.some((each) => ["wrong_tag", "newer_version", "upgrade_failed"].includes(each.kind));
  const needsForm = wrong.some((each) => each.repair === "field");
  const written = wrong.filter((each) => each.repair === "write");
  const removed = wrong.filter((each) => each.repair === "remove").map((each) => each.name!);
  return (
    <section class="misfit" aria-label="What does not fit the model">
      <strong>It does not fit its model</strong>
      <ul>
        {wrong.map((each) => (
          <li key={`${each.kind}${each.name}`}>
            {each.name && <code>{each.name}: </code>}
            {each.meaning}
            {each.found !== null && (
              <small>
                stored: <code>{each.found}</code>
              </small>
            )}
            {each.declared !== null && (
              <small>
                wanted: <code>{each.declared}</code>
              </small>
            )}
            {each.repair === null && <small> {each.advice}</small>}
          </li>
        ))}
      </ul>
      <div class="actions">
        {needsForm && !isUnknown && (
          <button disabled={!isEditable} onClick={onEdit}>
            Correct it in the form
          </button>
        )}
        {!needsForm && !isUnknown && written.length > 0 && (
          <button class="primary" disabled={!isEditable || working} onClick={() => onRepair([])} title="Writes the item as its entity would write it now">
            Repair
          </button>
        )}
        {!needsForm && !isUnknown && removed.length > 0 && (
          <button class="danger" disabled={!isEditable || working} onClick={() => onRepair(removed)}>
            {written.length ? "Repair, and remove" : "Remove"} {removed.join(", ")}
          </button>
        )}
      </div>
    </section>
  );
}
