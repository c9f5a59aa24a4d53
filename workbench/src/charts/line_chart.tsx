/** Values over time, or over anything that grows: lines, or areas that are stacked; with a legend that has the last values. */

import { useState } from "preact/hooks";

import { brief, ticks, useWidth } from "./scale";
import "../styles/charts.css";

export interface Series {
  name: string;
  values: (number | null)[];
  dashed?: boolean;
  /** Which of the eight colours; by default that of its place. */
  hue?: number;
}

interface Props {
  title: string;
  unit?: string;
  /** What is at each place of the lines, as the reader should see it. */
  labels: string[];
  series: Series[];
  stacked?: boolean;
  stepped?: boolean;
  /** A line to compare with. */
  limit?: { value: number; name: string };
  format?: (value: number) => string;
  height?: number;
  /** The legend has the greatest values; otherwise the last ones. */
  greatest?: boolean;
}

const LEFT = 46;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 20;

export function LineChart({ title, unit = "", labels, series, stacked = false, stepped = false, limit, format = brief, height = 150, greatest: shows = false }: Props) {
  const [element, width] = useWidth();
  const [pointed, setPointed] = useState<number | null>(null);
  const drawn = stacked ? sums(series) : series.map((each) => each.values);
  const greatest = Math.max(0, ...drawn.flat().map((each) => each ?? 0), limit?.value ?? 0);
  const marks = ticks(greatest);
  const top = marks[marks.length - 1]!;
  const across = Math.max(1, width - LEFT - RIGHT);
  const down = height - TOP - BOTTOM;
  const last = Math.max(1, labels.length - 1);
  const x = (place: number) => LEFT + (across * place) / last;
  const y = (value: number) => TOP + down * (1 - value / top);
  const line = (values: (number | null)[]) => path(values, x, y, stepped);
  const place = pointed === null ? labels.length - 1 : Math.min(pointed, labels.length - 1);
  const wanted = Math.max(1, Math.ceil(labels.length / Math.max(2, Math.floor(across / 90))));
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong> {unit && <small>{unit}</small>}
      </figcaption>
      <div class="plot" ref={element} style={{ height: `${height}px` }}>
        {width > 0 && (
          <svg
            width={width}
            height={height}
            role="img"
            aria-label={`${title}: ${series.map((each) => `${each.name} ${shown(each.values[labels.length - 1], format)}`).join(", ")}`}
            onMouseMove={(event) => setPointed(Math.max(0, Math.round(((event.offsetX - LEFT) / across) * last)))}
            onMouseLeave={() => setPointed(null)}
          >
            {marks.map((each) => (
              <g key={each} class="mark">
                <line x1={LEFT} x2={width - RIGHT} y1={y(each)} y2={y(each)} />
                <text x={LEFT - 6} y={y(each) + 3.5} text-anchor="end">{format(each)}</text>
              </g>
            ))}
            {labels.map((each, at) => at % wanted === 0 && (
              <text key={at} class="under" x={x(at)} y={height - 5} text-anchor={at === 0 ? "start" : x(at) > width - 40 ? "end" : "middle"}>{each}</text>
            ))}
            {stacked
              ? [...series.keys()].reverse().map((at) => (
                  <path key={series[at]!.name} class={`area hue-${hueOf(series, at)}`} d={`${line(drawn[at]!)} L ${x(last)} ${y(0)} L ${x(0)} ${y(0)} Z`} />
                ))
              : series.map((each, at) => (
                  <path key={each.name} class={`line hue-${hueOf(series, at)}${each.dashed ? " dashed" : ""}`} d={line(each.values)} />
                ))}
            {limit && (
              <g class="limit">
                <line x1={LEFT} x2={width - RIGHT} y1={y(limit.value)} y2={y(limit.value)} />
                <text x={width - RIGHT} y={y(limit.value) - 4} text-anchor="end">{limit.name}</text>
              </g>
            )}
            {pointed !== null && <line class="pointer" x1={x(place)} x2={x(place)} y1={TOP} y2={TOP + down} />}
          </svg>
        )}
      </div>
      <ul class="legend">
        {series.map((each, at) => (
          <li key={each.name}>
            <span class={`swatch hue-${hueOf(series, at)}${each.dashed ? " dashed" : ""}`} aria-hidden="true" />
            {each.name} <strong>{shown(shows && pointed === null ? most(each.values) : each.values[place], format)}</strong>
          </li>
        ))}
        {pointed !== null && <li class="quiet">{labels[place]}</li>}
      </ul>
    </figure>
  );
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}

function most(values: (number | null)[]): number {
  return Math.max(0, ...values.map((each) => each ?? 0));
}

function hueOf(series: Series[], place: number): number {
  return series[place]!.hue ?? place % 8;
}

/** Each series on top of those before it. */
function sums(series: Series[]): number[][] {
  const below: number[] = [];
  return series.map((each) => each.values.map((value, place) => (below[place] = (below[place] ?? 0) + (value ?? 0))));
}

function path(values: (number | null)[], x: (place: number) => number, y: (value: number) => number, stepped: boolean): string {
  let text = "";
  let before: number | null = null;
  values.forEach((value, place) => {
    if (value !== null) {
      const across = x(place).toFixed(1);
      if (before === null) text += `M ${across} ${y(value).toFixed(1)} `;
      else text += stepped ? `H ${across} V ${y(value).toFixed(1)} ` : `L ${across} ${y(value).toFixed(1)} `;
    }
    before = value;
  });
  return text;
}
