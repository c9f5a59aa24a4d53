/** The design of a model: its diagram, lint's findings, the sheet of its access patterns, and its collections. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError } from "../api";
import { change, href, route } from "../router";
import { session } from "../session";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { give } from "../transfer/transfers";
import { followed, type Design, type Finding } from "./design_calls";
import { PythonSvg } from "./python_svg";
import { SheetSection } from "./sheet_section";
import "../styles/design.css";

export function DesignPage() {
  const { query } = useStore(route);
  const { version, fault } = useStore(followed);
  const source = useStore(session)?.design;
  const part = query["part"] ?? null;
  const [design, setDesign] = useState<Design | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const isWaiting = source?.live === true && version === 0;

  const read = () => {
    if (isWaiting || (fault && design)) return; // the last good design stays
    setError(null);
    call<{ design: Design | null }>("design", { part }).then((found) => setDesign(found.design), setError);
  };
  useEffect(read, [part, version]);

  if (error && !design) return <div class="over"><Failure error={error} onRetry={read} /></div>;
  if (!design)
    return fault ? (
      <div class="over">
        <div class="empty">
          <h2>{source?.name} cannot be loaded yet</h2>
          <p>Save it without the error, and its design is here.</p>
        </div>
      </div>
    ) : (
      <div class="document" aria-busy="true"><div class="bone" /><div class="bone" /><div class="bone" /></div>
    );
  return (
    <div class="document design" tabIndex={0} role="region" aria-label="Design">
      <header>
        <h2>{design.part}</h2>
        {source?.live && <p class="quiet"><span class="dot live" /> follows the file: save it, and this page shows the new design</p>}
        {design.parts.length > 1 && <Parts design={design} />}
      </header>
      {error && <Failure error={error} onRetry={read} />}
      <Diagram design={design} />
      <Findings findings={design.findings} />
      <SheetSection key={design.part} design={design} />
      <Collections design={design} />
    </div>
  );
}

function Parts({ design }: { design: Design }) {
  return (
    <label class="line">
      <span class="quiet">Table</span>
      <select value={design.part} onChange={(event) => change({ part: event.currentTarget.value, items: null, per: null, rates: null })}>
        {design.parts.map((each) => <option key={each}>{each}</option>)}
      </select>
    </label>
  );
}

function Diagram({ design }: { design: Design }) {
  const file = `${design.part.replace(/\W+/g, "-")}.svg`;
  return (
    <section>
      <div class="section-head">
        <h2>Diagram</h2>
        <button onClick={() => give(new Blob([design.plain_diagram], { type: "image/svg+xml" }), file)}>Download SVG</button>
      </div>
      <div class="diagram scrolls" tabIndex={0} role="group" aria-label="Diagram">
        <PythonSvg text={design.diagram} />
      </div>
    </section>
  );
}

function Findings({ findings }: { findings: Finding[] }) {
  return (
    <section>
      <h2>Lint</h2>
      {!findings.length ? (
        <p class="quiet">Nothing found in the keys, indexes and fields.</p>
      ) : (
        <ul class="findings">
          {findings.map((each, place) => (
            <li key={place} class={`finding ${each.level}`}>
              <h3><code>{each.code}</code> {each.reason}</h3>
              {each.place.file ? (
                <p class="source-line"><small>{each.place.file}:{each.place.line}</small> <code>{each.text}</code></p>
              ) : (
                <p class="source-line"><code>{each.place.name}</code></p>
              )}
              <dl>
                <dt>cost</dt>
                <dd>{each.cost}</dd>
                <dt>fix</dt>
                <dd>{each.fix}</dd>
              </dl>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Collections({ design }: { design: Design }) {
  return (
    <section>
      <h2>Collections</h2>
      <p class="quiet">Sample items in the order in which they are stored and read.</p>
      {design.unsampled && <p class="wrong">{design.unsampled}</p>}
      {design.undrawn && <p class="wrong">{design.undrawn}</p>}
      <div class="drawings">
        {design.drawings.map((each) => (
          <figure key={`${each.table} ${each.index}`} class="picture">
            <a class="more-link" href={href(["t", each.table, "items"], { index: each.index })} aria-label={`All items of ${each.index ?? each.table}`}>
              All items
            </a>
            <div class="scrolls" tabIndex={0} role="group" aria-label={`Collections of ${each.index ?? each.table}`}>
              <PythonSvg text={each.svg} />
            </div>
          </figure>
        ))}
      </div>
    </section>
  );
}
