/** The tab Keys: the key attributes of a table, its entities, and how the keys of each are made of components. */

import type { Entity, Pattern, TableInfo } from "../api";
import { useEffect, useRef } from "preact/hooks";

import { entityHue, hue } from "../collection/hues";
import { go, route } from "../router";
import { loadModel, modelFailures, models } from "../session";
import { Failure } from "./failure";
import { useStore } from "../store";
import { count, own, plural, size } from "../values";
import { DeleteTable } from "./delete_table";

export function ModelPage({ table }: { table: TableInfo }) {
  const model = own(useStore(models), table.name);
  const failure = own(useStore(modelFailures), table.name);
  return (
    <div class="document">
      <section class="facts">
        <Fact name="Items" value={count(table.items)} />
        <Fact name="Size" value={size(table.bytes)} />
        <Fact name="Indexes" value={count(table.indexes.length)} />
        <Fact name="Stream" value={table.stream ? (table.stream_view ?? "on") : "none"} />
        <Fact name="Billing" value={table.billing === "PAY_PER_REQUEST" ? "on demand" : "provisioned"} />
        <Fact name="Status" value={table.status.toLowerCase()} />
      </section>
      <section>
        <h2>Keys</h2>
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">of</th>
              <th scope="col">partition key</th>
              <th scope="col">sort key</th>
              <th scope="col" class="number">entries</th>
              <th scope="col" class="number">size</th>
              <th scope="col">projects</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">{table.name}</th>
              <td><code>{table.keys.partition.map((each) => `${each.name}: ${each.type}`).join(", ")}</code></td>
              <td><code>{table.keys.sort.map((each) => `${each.name}: ${each.type}`).join(", ") || "—"}</code></td>
              <td class="number">{count(table.items)}</td>
              <td class="number">{size(table.bytes)}</td>
              <td>everything</td>
            </tr>
            {table.indexes.map((each) => (
              <tr key={each.name}>
                <th scope="row">
                  {each.name} <small>{each.kind}</small>
                </th>
                <td><code>{each.keys.partition.map((key) => `${key.name}: ${key.type}`).join(", ")}</code></td>
                <td><code>{each.keys.sort.map((key) => `${key.name}: ${key.type}`).join(", ") || "—"}</code></td>
                <td class="number">
                  {count(each.items)}
                  {each.items < table.items && <small> {Math.round((100 * each.items) / Math.max(1, table.items))} %</small>}
                </td>
                <td class="number">{size(each.bytes)}</td>
                <td>{each.projection === "ALL" ? "everything" : each.projection === "KEYS_ONLY" ? "keys only" : each.included.join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section>
        <h2>Entities</h2>
        {failure ? (
          <Failure error={failure} onRetry={() => loadModel(table.name)} />
        ) : model === undefined ? (
          <div class="bone" />
        ) : model.model === null ? (
          <p class="quiet">No form was found that the keys of its items have in common.</p>
        ) : (
          <>
            <p class="quiet">
              {model.loaded
                ? "As the loaded module declares them."
                : `Inferred from ${plural(model.sampled ?? 0, "item")}: their keys have these forms.`}
            </p>
            {model.model.entities.map((each) => (
              <EntityCard key={each.name} table={table.name} entity={each} />
            ))}
          </>
        )}
      </section>
      {model?.source && (
        <section>
          <h2>The model as code</h2>
          <p class="quiet">A Python module that reads and writes this table; <code>isotone model</code> prints it, too.</p>
          <pre class="code" tabIndex={0}>{model.source}</pre>
        </section>
      )}
      <DeleteTable table={table} />
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div class="fact">
      <span>{name}</span>
      <strong>{value}</strong>
    </div>
  );
}

function EntityCard({ table, entity }: { table: string; entity: Entity }) {
  const card = useRef<HTMLElement>(null);
  const isWanted = useStore(route).query["entity"] === entity.name;
  useEffect(() => {
    if (isWanted) card.current?.scrollIntoView({ block: "center" });
  }, [isWanted]);
  return (
    <article class={isWanted ? "entity-card wanted" : "entity-card"} ref={card}>
      <h3>
        <span class={`entity ${entityHue(table, entity.name)}`}>{entity.name}</span>
        {entity.about && <small>{entity.about}</small>}
      </h3>
      {entity.patterns.map((pattern) => (
        <div class="pattern" key={pattern.name}>
          <span class="pattern-name">
            {pattern.name}
            {pattern.index && <small> {pattern.index}</small>}
            {pattern.sparse && <small> sparse</small>}
          </span>
          <Form table={table} pattern={pattern} />
          <button class="link" onClick={() => go(["t", table, "items"], { pattern: `${entity.name}.${pattern.name}`, index: pattern.index })}>
            query
          </button>
        </div>
      ))}
      <p class="fields">
        {entity.fields.map((each) => (
          <span key={each.name}>
            <code>{each.name}</code> <small>{each.type}</small>
          </span>
        ))}
      </p>
    </article>
  );
}

export function Form({ table, pattern }: { table: string; pattern: Pattern }) {
  return (
    <span class="form">
      {Object.entries(pattern.form).map(([attribute, parts]) => (
        <span class="form-part" key={attribute} title={attribute}>
          {parts.map(([text, component], place) => (
            <span key={place} class={component === null ? "literal" : hue(table, component)}>
              {component ?? text}
            </span>
          ))}
        </span>
      ))}
    </span>
  );
}
