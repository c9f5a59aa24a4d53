/** The query of a view: which table or index, which partition, which range of it, which filter. */

import type { View } from "./view";

export function QueryBar({ view, onShow }: { view: View; onShow: (view: View) => void; onRefresh: () => void }) {
  return (
    <div class="query-bar">
      <div class="chips" role="group" aria-label="Table or index">
        {[null, ...view.table.indexes].map((index) => (
          <button
            key={index?.name ?? ""}
            class={index === view.index ? "chip current" : "chip"}
            aria-pressed={index === view.index}
            onClick={() => onShow({ ...view, index, partition: null, sort: null, start: null, descending: false })}
          >
            {index?.name ?? "Table"}
          </button>
        ))}
      </div>
    </div>
  );
}
