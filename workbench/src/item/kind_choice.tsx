/** What a new item is: one of the model's entities, or raw attributes. */

import { useLayoutEffect, useRef } from "preact/hooks";

import type { Entity } from "../api";
import { entityHue } from "../collection/hues";
import { Form } from "../shell/model_page";

interface Props {
  table: string;
  kinds: Entity[];
  onChoose: (name: string) => void;
  onRaw: () => void;
}

/** How the primary key is made, of an entity without a description. */
function KeyForm({ table, kind }: { table: string; kind: Entity }) {
  const primary = kind.patterns.find((each) => each.index === null);
  return (
    <span class="kind-key" aria-hidden="true">
      {primary && <Form table={table} pattern={primary} />}
    </span>
  );
}

export function KindChoice({ table, kinds, onChoose, onRaw }: Props) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => list.current?.querySelector("button")?.focus(), []);
  return (
    <div class="kinds" ref={list} role="group" aria-label="What is it?">
      <h2>What is it?</h2>
      {kinds.map((each) => (
        <button key={each.name} onClick={() => onChoose(each.name)}>
          <span class={`entity ${entityHue(table, each.name)}`}>{each.name}</span>
          {each.about ? <small>{each.about}</small> : <KeyForm table={table} kind={each} />}
        </button>
      ))}
      <button class="link" onClick={onRaw}>
        A raw item, without the model
      </button>
    </div>
  );
}
