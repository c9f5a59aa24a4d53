/** Shows a nested value as a tree. Data is inserted as text, never as HTML. */

import type { AttributeValue, Item } from "../api";
import { bytesOf, typeOf } from "../values";

export function Tree({ value }: { value: AttributeValue | undefined }) {
  if (value === undefined) return <span class="absent">absent</span>;
  const type = typeOf(value);
  const inner = value[type];
  if (typeof inner === "object" && inner !== null && !Object.keys(inner).length) return <span class="absent">empty</span>;
  switch (type) {
    case "M":
      return (
        <ul class="tree">
          {Object.entries(inner as Item).map(([name, each]) => (
            <li key={name}>
              <span class="member">{name}</span> <Tree value={each} />
            </li>
          ))}
        </ul>
      );
    case "L":
      return (
        <ol class="tree" start={0}>
          {(inner as AttributeValue[]).map((each, place) => (
            <li key={place}>
              <Tree value={each} />
            </li>
          ))}
        </ol>
      );
    case "SS":
    case "NS":
    case "BS":
      return (
        <span class="set">
          {(inner as string[]).map((each) => (
            <code key={each}>{each}</code>
          ))}
        </span>
      );
    case "B":
      return (
        <span class="v v-B">
          {inner as string} <small>{bytesOf(inner as string)} bytes, Base64</small>
        </span>
      );
    case "NULL":
      return <span class="v v-NULL">null</span>;
    case "S":
      return inner === "" ? <span class="absent">empty text</span> : <span class="v v-S">{inner as string}</span>;
    default:
      return <span class={`v v-${type}`}>{String(inner)}</span>;
  }
}
