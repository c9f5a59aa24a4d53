/** What a new item is: one of the model's entities, or raw attributes. */

import { useLayoutEffect, useRef } from "preact/hooks";

import type { Entity } from "../api";
import { entityHue } from "../collection/hues";

interface Props {
  table: string;
  kinds: Entity[];
  onChoose: (name: string) => void;
  onRaw: () => void;
}

export function KindChoice({ table, kinds, onChoose, onRaw }: Props) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => list.current?.querySelector("button")?.focus(), []);
  return (
    <div class="kinds" ref={list} role="group" aria-label="What is it?">
      <h3>What is it?</h3>
      {kinds.map((each) => (
        <button key={each.name} onClick={() => onChoose(each.name)}>
          <span class={`entity ${entityHue(table, each.name)}`}>{each.name}</span>
          <small>{each.about}</small>
        </button>
      ))}
      <button class="link" onClick={onRaw}>
        A raw item, without the model
      </button>
    </div>
  );
}
