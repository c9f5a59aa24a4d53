/** Edits or creates one entity through its model: saves, shows what is refused and what somebody else did; Cost. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { CallError, Entity, Item, TableInfo } from "../api";
import { ExplainDialog } from "../query/explain_dialog";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import type { Sent } from "./changes";
import { Conflict } from "./conflict";
import { givenFields, Refused, requestToSave, save, type Form, type Refusal, type Values } from "./edit_calls";
import { EntityForm } from "./entity_form";
import type { Aim } from "./inspector";
import { ItemLink } from "./item_link";
import { guardPage } from "./left_forms";

interface Props {
  table: TableInfo;
  entity: Entity;
  item: Item | null;
  form: Form | null;
  given: Values | null;
  /** What was typed before the form was left. */
  typed: Values | null;
  /** Takes what is typed and not saved, when the form goes. */
  onLeft: (values: Values) => void;
  aimed: Aim | null;
  onSaved: (before: Item | null, after: Item) => void;
  /** Shows the item as somebody else left it. */
  onTheirs: (now: Item | null) => void;
  onRaw: () => void;
  onCancel: () => void;
}

export function EntityEditor({ table, entity, item, form, given, typed, aimed, onLeft, onSaved, onTheirs, onRaw, onCancel }: Props) {
  const [saving, setSaving] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [began, setBegan] = useState(form); // after a conflict, what somebody else had made of it
  const [mine, setMine] = useState<Values>({});
  const [refused, setRefused] = useState<Values>({}); // the values of which the refusal speaks
  const [error, setError] = useState<CallError | null>(null);
  const [costing, setCosting] = useState<Sent | null>(null);
  const unsaved = useRef<Values | null>(null);
  const told = useRef<HTMLDivElement>(null);
  useEffect(() => told.current?.focus(), [refusal]); // a fast answer leaves the focus on the button
  const identifying = givenFields(entity, item === null).filter((each) => each.identifies).map((each) => each.name);
  const leave = useRef(onLeft);
  leave.current = onLeft;
  useEffect(() => {
    const release = guardPage(() => unsaved.current !== null);
    return () => {
      release();
      if (unsaved.current) leave.current(unsaved.current);
    };
  }, []);

  const send = async (values: Values, over: Item | null, before = form) => {
    setSaving(true);
    setError(null);
    try {
      const after = await save(table, entity.name, values, over);
      unsaved.current = null;
      onSaved(over, after);
      setRefusal(null);
    } catch (failure) {
      if (failure instanceof Refused) {
        setBegan(before);
        setRefused(values);
        const { refusal } = failure;
        const last = identifying.at(-1);
        setRefusal(!item && refusal.code === "AlreadyExists" && last ? { ...refusal, fields: { [last]: refusal.message } } : refusal);
      } else setError(failure as CallError);
    } finally {
      setSaving(false);
    }
  };
  const showCost = (values: Values) => {
    requestToSave(table, entity.name, values, item).then(setCosting, (failure: Error) => notify(failure.message, { failed: true }));
  };
  const isChanged = refusal?.changed === true && item !== null;
  return (
    <>
      {error && <Failure error={error} />}
      {refusal && isChanged && (
        <Conflict table={table} entity={entity} refusal={refusal} began={began} mine={mine} saving={saving} onMine={(now, theirs) => void send(mine, now, theirs)} onTheirs={onTheirs} />
      )}
      {refusal && !isChanged && !Object.keys(refusal.fields).length && (
        <div class="failure refusal" role="alert" tabIndex={-1} ref={told}>
          <strong>{item ? "Not saved" : "Not created"}</strong>
          <p>{refusal.message}.</p>
          {refusal.taken_by && <p><ItemLink table={table} of={refusal.taken_by}>Show the {entity.name} that is there</ItemLink></p>}
        </div>
      )}
      <EntityForm
        table={table}
        entity={entity}
        item={item}
        form={form}
        given={given}
        typed={typed}
        aimed={aimed}
        saving={saving}
        isUndecided={refusal !== null && isChanged}
        refused={refusal?.fields ?? NONE}
        takenBy={refusal?.taken_by ?? null}
        onValues={(values, isTyped) => {
          setMine(values);
          // Another key need not be taken, whichever of its fields was changed.
          if (refusal?.code === "AlreadyExists" && identifying.some((each) => JSON.stringify(values[each]) !== JSON.stringify(refused[each]))) setRefusal(null);
          unsaved.current = isTyped ? values : null;
        }}
        onSave={(values) => void send(values, item)}
        onCost={showCost}
        onRaw={onRaw}
        onCancel={onCancel}
      />
      {costing && <ExplainDialog given={costing} onClose={() => setCosting(null)} />}
    </>
  );
}

const NONE: Record<string, string> = {};
