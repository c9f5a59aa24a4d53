/** Named values side by side, as bars in a list; with a limit that some may exceed. */

import type { ComponentChildren } from "preact";

import { brief } from "./scale";
import "../styles/charts.css";

export interface Bar {
  name: ComponentChildren;
  key: string;
  value: number;
  /** Beside the bar, where the value alone does not say it. */
  text?: string;
  over?: boolean;
}

interface Props {
  title: string;
  unit?: string;
  bars: Bar[];
  limit?: number;
}

export function BarChart({ title, unit = "", bars, limit }: Props) {
  const most = Math.max(...bars.map((each) => each.value), limit ?? 0, Number.MIN_VALUE);
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong> {unit && <small>{unit}</small>}
      </figcaption>
      <ul class="bars">
        {bars.map((each) => (
          <li key={each.key} class={each.over ? "exceeding" : ""}>
            <span class="of">{each.name}</span>
            <span class="track">
              <span style={{ width: `${(100 * each.value) / most}%` }} />
              {limit !== undefined && <i style={{ left: `${(100 * limit) / most}%` }} />}
            </span>
            <span class="amount">{each.text ?? brief(each.value)}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
