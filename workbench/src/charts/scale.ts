/** The scale of a chart's axis: values to pixels, and the round values of its ticks. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";

/** Round values from 0 up to a greatest one, at most so many steps. */
export function ticks(most: number, steps = 4): number[] {
  if (!(most > 0)) return [0, 1];
  const raw = most / steps;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= raw) ?? raw;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, place) => place * step);
}

/** A number with a few digits: 1.2k, 340, 0.05. */
export function brief(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trimmed(value / 1e9)}G`;
  if (size >= 1e6) return `${trimmed(value / 1e6)}M`;
  if (size >= 1e4) return `${trimmed(value / 1e3)}k`;
  return trimmed(value);
}

function trimmed(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** The width of an element in pixels; it follows the window. */
export function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const found = element.current;
    if (!found) return;
    const watcher = new ResizeObserver(() => setWidth(Math.floor(found.clientWidth)));
    watcher.observe(found);
    setWidth(Math.floor(found.clientWidth));
    return () => watcher.disconnect();
  }, []);
  return [element, width];
}
