/** What a workload does to DynamoDB at its real size: load over a day, hot keys, partitions, storage, cost; at any size. */

import { useState } from "preact/hooks";

import { call, type CallError } from "../api";
import { BarChart } from "../charts/bar_chart";
import { LineChart, type Series } from "../charts/line_chart";
import { brief } from "../charts/scale";
import { useRepeated } from "../repeated";
import { change, route } from "../router";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { count, size as bytes } from "../values";

interface Load {
  reads: number;
  writes: number;
}
interface Place {
  table: string;
  index: string | null;
  average: Load;
  peak: Load;
  stored_bytes: number;
  growth_bytes_a_day: number;
  partitions: number;
  throttled: number;
  busiest: number[];
}
interface Key {
  key: string;
  peak: Load;
  part_of_a_partition: number;
  throttled: number;
  shards: number;
  wanted_shards: number;
}
interface Simulated {
  workload: string;
  populations: Record<string, number>;
  declared: Record<string, number>;
  sampled: Record<string, number>;
  throttled: number;
  /** What was throttled before keys were divided; null if none is. */
  undivided: number | null;
  write_amplification: number;
  places: Place[];
  hottest_keys: Key[];
  month: { currency: string; on_demand: number; provisioned: number; storage: number };
  day: number[];
  busy: number;
  seconds: number;
  prices: { region: string; as_of: string };
  assumptions: string[];
}
type Answer = Simulated | { workload: null } | { running: { what: string; done: number; of: number } };

const AGAIN = 400; // milliseconds between two looks at a run
const MONTHS = 24;
const DAYS_A_MONTH = 365 / 12;
const SIZES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

export function SimulationPage() {
  const { query } = useStore(route);
  const [found, setFound] = useState<Simulated | null>(null);
  const [running, setRunning] = useState<string | null>(null);
  const [none, setNone] = useState(false);
  const [failure, setFailure] = useState<CallError | null>(null);
  const size = Number(query["size"]) > 0 ? Number(query["size"]) : null;
  const shards = shardsOf(query["shards"]);
  const asked = JSON.stringify({ size, shards });
  useRepeated(
    AGAIN,
    async (signal) => {
      try {
        const answer = await call<Answer>("simulation", JSON.parse(asked) as object, signal);
        if (signal.aborted) return false;
        setFailure(null);
        if ("running" in answer) {
          const { what, done, of } = answer.running;
          setRunning(of ? `with ${what}: ${count(done)} of ${count(of)} calls` : "starting");
          return true;
        }
        setRunning(null);
        if (answer.workload === null) setNone(true);
        else setFound(answer as Simulated);
        return false;
      } catch (error) {
        if (signal.aborted) return false;
        setFailure(error as CallError);
        return (error as CallError).code === "Disconnected";
      }
    },
    [asked],
  );
  if (none) return <NoWorkload />;
  if (failure && !found) return <div class="over"><Failure error={failure} /></div>;
  if (!found)
    return (
      <div class="document" aria-busy="true">
        <div>
          <h2>The workload runs in memory</h2>
          <p class="quiet" role="status">{running ?? "starting"}</p>
        </div>
        <div class="bone" /><div class="bone" /><div class="bone" />
      </div>
    );
  return <Report found={found} failure={failure} shards={shards} />;
}

function Report({ found, failure, shards }: { found: Simulated; failure: CallError | null; shards: Record<string, number> }) {
  const divide = (key: string, number: number) => {
    const next = { ...shards };
    if (number > 1) next[key] = number;
    else delete next[key];
    change({ shards: Object.keys(next).length ? JSON.stringify(next) : null });
  };
  const largest = Object.entries(found.declared).sort(([, one], [, other]) => other - one)[0];
  const money = new Intl.NumberFormat("en-US", { style: "currency", currency: found.month.currency, maximumFractionDigits: found.month.on_demand < 100 ? 2 : 0 });
  return (
    <div class="document simulation" tabIndex={0} role="region" aria-label="Simulation">
      <header>
        <h2>{found.workload}</h2>
        <p class="quiet">
          {Object.entries(found.populations).map(([name, number]) => `${count(number)} × ${name}`).join(", ")}; from a run with{" "}
          {Object.values(found.sampled).map(count).join(", ")} of them in memory, in {found.seconds.toFixed(1)} s
        </p>
        {largest && <Sizes name={largest[0]} declared={largest[1]} now={found.populations[largest[0]]!} />}
      </header>
      {failure && <Failure error={failure} />}
      <section class="facts" aria-label="In short">
        <Fact name="throttled" value={percent(found.throttled)} bad={found.throttled > 0} more={found.undivided === null ? "" : `before dividing ${percent(found.undivided)}`} />
        <Fact name="a month on demand" value={money.format(found.month.on_demand)} />
        <Fact name="a month provisioned" value={money.format(found.month.provisioned)} />
        <Fact name="storage" value={money.format(found.month.storage)} />
        <Fact name="write amplification" value={found.write_amplification.toFixed(2)} />
      </section>
      <div class="charts">
        <Day found={found} />
        <Keys found={found} />
        {found.places[0] && <Partitions place={found.places[0]} />}
        <Storage found={found} />
      </div>
      <Hot found={found} onDivide={divide} />
      <Places found={found} />
      <section>
        <h2>Assumptions</h2>
        <ul class="assumed">
          {found.assumptions.map((each) => <li key={each}>{each}</li>)}
          <li>prices of {found.prices.region} at {found.prices.as_of}</li>
        </ul>
      </section>
    </div>
  );
}

function Sizes({ name, declared, now }: { name: string; declared: number; now: number }) {
  const sizes = [...new Set([...SIZES, declared])].sort((one, other) => one - other);
  return (
    <div class="query-line">
      <span class="chips" role="group" aria-label={`Number of ${name}s`}>
        {sizes.map((each) => (
          <button
            key={each}
            class={each === now ? "chip current" : "chip"}
            aria-pressed={each === now}
            onClick={() => change({ size: each === declared ? null : String(each) })}
          >
            {short(each)}
          </button>
        ))}
      </span>
      <span class="quiet">{name}s; declared are {count(declared)}</span>
    </div>
  );
}

function Day({ found }: { found: Simulated }) {
  const hours = [...found.day, found.day[0] ?? 1];
  const series: Series[] = found.places.slice(0, 4).flatMap((place, at) =>
    (["writes", "reads"] as const)
      .filter((kind) => place.average[kind] > 0)
      .map((kind) => ({ name: `${nameOf(place)} ${kind}`, values: hours.map((hour) => place.average[kind] * hour), dashed: kind === "reads", hue: at })),
  );
  return <LineChart title="Units a second over a day" unit="and in the busiest hour" greatest labels={hours.map((_, hour) => `${hour}:00`)} series={series} stepped height={190} />;
}

function Keys({ found }: { found: Simulated }) {
  const bars = found.hottest_keys.slice(0, 8).map((each) => ({
    key: each.key,
    name: <code>{each.key}{each.shards > 1 ? ` / ${each.shards}` : ""}</code>,
    value: each.part_of_a_partition,
    text: percent(each.part_of_a_partition),
    over: each.part_of_a_partition > 1,
  }));
  return <BarChart title="Hottest keys" unit="in % of what one partition serves, in the busiest hour" bars={bars} limit={1} />;
}

function Partitions({ place }: { place: Place }) {
  const bars = place.busiest.slice(0, 8).map((each, at) => ({ key: String(at), name: `no. ${at + 1}`, value: each, text: percent(each), over: each > 1 }));
  return <BarChart title={`Busiest of ${count(place.partitions)} partitions of ${nameOf(place)}`} unit="in % of their limit" bars={bars} limit={1} />;
}

function Storage({ found }: { found: Simulated }) {
  const months = Array.from({ length: MONTHS + 1 }, (_, month) => month);
  const series = found.places.slice(0, 4).map((place) => ({
    name: nameOf(place),
    values: months.map((month) => place.stored_bytes + place.growth_bytes_a_day * DAYS_A_MONTH * month),
  }));
  return <LineChart title="Storage" unit="over two years, if nothing is deleted" labels={months.map((month) => (month ? `${month} months` : "now"))} series={series} stacked format={bytes} height={190} />;
}

function Hot({ found, onDivide }: { found: Simulated; onDivide: (key: string, number: number) => void }) {
  const hot = found.hottest_keys.filter((each) => each.part_of_a_partition >= found.busy || each.shards > 1);
  if (!hot.length)
    return (
      <section>
        <h2>What to change</h2>
        <p class="quiet">No key gets 70 % of what a partition serves.</p>
      </section>
    );
  return (
    <section>
      <h2>What to change</h2>
      <p class="quiet">One key can have 3,000 read and 1,000 write units a second. Divide it to spread them over several keys.</p>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Keys to divide">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">key</th>
              <th scope="col" class="number">reads a second</th>
              <th scope="col" class="number">writes a second</th>
              <th scope="col" class="number">throttled</th>
              <th scope="col">divided into</th>
            </tr>
          </thead>
          <tbody>
            {hot.map((each) => (
              <tr key={each.key}>
                <th scope="row"><code>{each.key}</code></th>
                <td class="number">{count(Math.round(each.peak.reads))}</td>
                <td class="number">{count(Math.round(each.peak.writes))}</td>
                <td class="number">{percent(each.throttled)}</td>
                <td>
                  <span class="query-line">
                    <input
                      class="shards"
                      type="number"
                      min={1}
                      max={1000}
                      value={each.shards}
                      aria-label={`Keys for ${each.key}`}
                      onChange={(event) => onDivide(each.key, Math.min(1000, Math.max(1, Math.round(Number(event.currentTarget.value)) || 1)))}
                    />
                    {each.wanted_shards > each.shards && <button onClick={() => onDivide(each.key, each.wanted_shards)}>Divide into {each.wanted_shards}</button>}
                    {each.shards > 1 && <button onClick={() => onDivide(each.key, 1)}>Undo</button>}
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Places({ found }: { found: Simulated }) {
  return (
    <section>
      <h2>Tables and indexes</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Tables and indexes">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">in the busiest hour</th>
              <th scope="col" class="number">reads a second</th>
              <th scope="col" class="number">writes a second</th>
              <th scope="col" class="number">partitions</th>
              <th scope="col" class="number">stored</th>
              <th scope="col" class="number">a day</th>
              <th scope="col" class="number">throttled</th>
            </tr>
          </thead>
          <tbody>
            {found.places.map((each) => (
              <tr key={nameOf(each)}>
                <th scope="row">{nameOf(each)}</th>
                <td class="number">{count(Math.round(each.peak.reads))}</td>
                <td class="number">{count(Math.round(each.peak.writes))}</td>
                <td class="number">{count(each.partitions)}</td>
                <td class="number">{bytes(each.stored_bytes)}</td>
                <td class="number">+{bytes(each.growth_bytes_a_day)}</td>
                <td class="number">{percent(each.throttled)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function NoWorkload() {
  return (
    <div class="over">
      <div class="empty wide">
        <h2>No workload is loaded</h2>
        <p>
          What happens at ten million users? Declare who uses your tables and how often; your own code then runs with a few hundred of
          them in memory, and here you see the load, hot keys, throttling and cost of all of them.
        </p>
        <pre>{EXAMPLE}</pre>
        <p>Start the workbench with it: <code>isotone serve shop.db --workload song_load</code></p>
      </div>
    </div>
  );
}

const EXAMPLE = `# song_load.py
load = Workload("songs", tables=[songs])
listeners = load.population("listener", 10_000_000)

@load.action(by=listeners, per_day=40)
def play(call: Call) -> None:
    call.store.update(Chart, Chart.plays.add(1), name="today")`;

function Fact({ name, value, more = "", bad = false }: { name: string; value: string; more?: string; bad?: boolean }) {
  return (
    <div class={bad ? "fact bad" : "fact"}>
      <span>{name}</span>
      <strong>{value}</strong>
      {more && <small>{more}</small>}
    </div>
  );
}

function nameOf({ table, index }: { table: string; index: string | null }): string {
  return index ? `${table} · ${index}` : table;
}

function percent(share: number): string {
  return share === 0 ? "0 %" : share < 0.001 ? "< 0.1 %" : `${brief(Math.round(share * 1000) / 10)} %`;
}

function short(number: number): string {
  return number >= 1e9 ? `${number / 1e9}B` : number >= 1e6 ? `${number / 1e6}M` : number >= 1e3 ? `${number / 1e3}k` : String(number);
}

function shardsOf(text: string | undefined): Record<string, number> {
  try {
    const found: unknown = JSON.parse(text ?? "{}");
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    return Object.fromEntries(Object.entries(found).filter(([, number]) => Number.isInteger(number) && number >= 1 && number <= 1000)) as Record<string, number>;
  } catch {
    return {};
  }
}
