/** One difference: each attribute before and after, with its type; inside maps and lists the members that differ. */

import { useEffect, useState } from "preact/hooks";

import { call, type AttributeValue, type CallError, type Item } from "../api";
import { KeyText } from "../collection/key_text";
import { Tree } from "../item/tree";
import { Failure } from "../shell/failure";
import { own, plural, same, TYPES, typeOf } from "../values";
import type { Shown } from "./difference_rows";
import type { Comparison, Difference, Kind } from "./snapshot_calls";

const TITLES: Record<Kind, string> = { added: "Added since", removed: "Removed since", changed: "Changed" };
const DOES: Record<Kind, string> = { added: "Delete it", removed: "Write it again", changed: "Put it back" };

interface Props {
  comparison: Comparison;
  row: Shown;
  canPutBack: boolean;
  /** Why not. */
  reason: string;
  isDone: boolean;
  onPutBack: () => void;
  onClose: () => void;
}

export function DifferenceDetails({ comparison, row, canPutBack, reason, isDone, onPutBack, onClose }: Props) {
  const [found, setFound] = useState<Difference | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  useEffect(() => {
    const cancel = new AbortController();
    call<Difference>("comparison_item", { id: comparison.id, number: row.number }, cancel.signal).then(setFound, (failure: CallError) => {
      if (!cancel.signal.aborted) setError(failure);
    });
    return () => cancel.abort();
  }, [comparison.id, row.number]);
  return (
    <aside class="inspector" aria-label="Difference">
      <header>
        <strong class={`kind-name ${row.kind}`}>{isDone ? "Put back" : TITLES[row.kind]}</strong>
        <span class="space" />
        {comparison.to === "now" && (
          <button disabled={!canPutBack || isDone} title={reason || `${DOES[row.kind]} (b)`} onClick={onPutBack}>
            {DOES[row.kind]}
          </button>
        )}
        <button class="icon" aria-label="Close the difference" onClick={onClose}>
          ✕
        </button>
      </header>
      <div class="inspected">
        {comparison.keys.map((name) => (
          <div class="attribute of-key" key={name}>
            <div class="attribute-name">
              {name} <small>{row.key[name] ? TYPES[typeOf(row.key[name])] : ""}</small>
            </div>
            <KeyText table={comparison.table} value={row.key[name]} segments={own(row.segments, name)} />
          </div>
        ))}
        {error && <Failure error={error} />}
        {found && found.number === row.number && <Attributes found={found} keys={comparison.keys} />}
      </div>
    </aside>
  );
}

function Attributes({ found, keys }: { found: Difference; keys: string[] }) {
  const whole = found.before ?? found.after ?? {};
  const rest = Object.keys(whole).filter((each) => !keys.includes(each) && !found.changed.includes(each));
  if (found.kind !== "changed")
    return (
      <>
        {Object.keys(whole)
          .filter((each) => !keys.includes(each))
          .map((name) => (
            <div class="attribute" key={name}>
              <AttributeName name={name} values={[whole[name]]} />
              <Tree value={whole[name]} />
            </div>
          ))}
      </>
    );
  return (
    <>
      {found.changed.map((name) => [name, own(found.before ?? {}, name), own(found.after ?? {}, name)] as const).map(([name, was, is]) => (
        <div class="attribute" key={name}>
          <AttributeName name={name} values={[was, is]} />
          {partsOf(was, is).map(([path, before, after]) => (
            <div class="before-after" key={path}>
              {path && <code class="member-path">{path}</code>}
              <Side kind="before" value={before} />
              <Side kind="after" value={after} />
            </div>
          ))}
        </div>
      ))}
      {rest.length > 0 && (
        <details class="unchanged">
          <summary>{plural(rest.length, "attribute is the same", "attributes are the same")}</summary>
          {rest.map((name) => (
            <div class="attribute" key={name}>
              <AttributeName name={name} values={[whole[name]]} />
              <Tree value={whole[name]} />
            </div>
          ))}
        </details>
      )}
    </>
  );
}

function AttributeName({ name, values }: { name: string; values: (AttributeValue | undefined)[] }) {
  const types = [...new Set(values.filter((each) => each !== undefined).map((each) => TYPES[typeOf(each)]))];
  return (
    <div class="attribute-name">
      {name} <small>{types.join(" → ")}</small>
    </div>
  );
}

function Side({ kind, value }: { kind: "before" | "after"; value: AttributeValue | undefined }) {
  return (
    <div class={`side ${kind}`}>
      <small>{kind}</small>
      <Tree value={value} />
    </div>
  );
}

type Part = [path: string, before: AttributeValue | undefined, after: AttributeValue | undefined];

const PARTS = 50;

/** The innermost parts of two values that differ; a value that is no map or list is one part. */
function partsOf(before: AttributeValue | undefined, after: AttributeValue | undefined): Part[] {
  const found: Part[] = [];
  const walk = (path: string, one: AttributeValue | undefined, other: AttributeValue | undefined) => {
    if (same(one, other) || found.length > PARTS) return;
    if (one && other && "M" in one && "M" in other) {
      const [mine, theirs] = [one["M"] as Item, other["M"] as Item];
      for (const name of new Set([...Object.keys(mine), ...Object.keys(theirs)])) walk(path ? `${path}.${name}` : name, own(mine, name), own(theirs, name));
    } else if (one && other && "L" in one && "L" in other) {
      const [mine, theirs] = [one["L"] as AttributeValue[], other["L"] as AttributeValue[]];
      if (mine.length !== theirs.length) found.push([path, one, other]);
      else mine.forEach((each, place) => walk(`${path}[${place}]`, each, theirs[place]));
    } else found.push([path, one, other]);
  };
  walk("", before, after);
  return found.length && found.length <= PARTS ? found : [["", before, after]];
}
