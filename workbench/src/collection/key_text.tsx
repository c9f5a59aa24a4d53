/** A stored key with its components in their colours; delimiters and literals are dim. */

import type { AttributeValue, Segment } from "../api";
import { shortText } from "../values";
import { hue } from "./hues";

interface Props {
  table: string;
  value: AttributeValue | undefined;
  segments: Segment[] | undefined;
}

export function KeyText({ table, value, segments }: Props) {
  if (value === undefined) return <span class="absent">—</span>;
  if (!segments) return <span class="key">{shortText(value)}</span>;
  return (
    <span class="key">
      {segments.map(([text, component, meaning], place) =>
        component === null ? (
          <span class="literal" key={place}>
            {text}
          </span>
        ) : (
          <span
            class={hue(table, component)}
            key={place}
            title={meaning === null ? component : `${component} = ${meaning}`}
          >
            {text}
          </span>
        ),
      )}
    </span>
  );
}
