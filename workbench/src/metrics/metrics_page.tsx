/** What the server does now: requests, latencies, write groups, the file and its log, and the keys that are used most. */

import { useState } from "preact/hooks";

import type { CallError, Session } from "../api";
import { BarChart } from "../charts/bar_chart";
import { LineChart, type Series } from "../charts/line_chart";
import { brief } from "../charts/scale";
import { useRepeated } from "../repeated";
import { href } from "../router";
import { session as sessionStore } from "../session";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { count, size } from "../values";
import { SampleLoad } from "./sample_load";
import {
  byAction, duration, EVERY, histogram, type HotKeys, NoPage, OTHERS, quantile, rates, type Reading, readHotKeys, readings, readMetrics,
  recentHistograms, type TableUse, tableUses,
} from "./metrics_calls";

const REQUESTS = "isotone_requests_total";
const LATENCY = "isotone_request_duration_seconds";
const MOST = 6; // actions with a line of their own

export function MetricsPage() {
  const session = useStore(sessionStore);
  const all = useStore(readings);
  const [hot, setHot] = useState<HotKeys | null>(null);
  const [failure, setFailure] = useState<CallError | NoPage | null>(null);
  useRepeated(
    EVERY,
    async (signal) => {
      if (!session) return false;
      try {
        await readMetrics(session, signal);
        setFailure(null);
        const keys = await readHotKeys(session, signal).catch((error: Error) => {
          if (error instanceof NoPage) return null; // the rest is worth showing
          throw error;
        });
        if (!signal.aborted) setHot(keys);
      } catch (error) {
        if (signal.aborted) return false;
        setFailure(error as CallError | NoPage);
        return !(error instanceof NoPage);
      }
      return !signal.aborted;
    },
    [session?.target],
  );
  if (failure instanceof NoPage) return <NoMetrics session={session!} reason={failure.message} />;
  const last = all[all.length - 1];
  if (failure && !last) return <div class="over"><Failure error={failure} /></div>;
  if (!session || !last) return <div class="document"><div class="bone" /><div class="bone" /><div class="bone" /></div>;
  return (
    <div class="document" tabIndex={0} role="region" aria-label="Metrics">
      {failure && <Failure error={failure} />}
      <Head last={last} all={all} />
      {session.tour && <SampleLoad />}
      <div class="charts">
        <Requests all={all} />
        <Latencies all={all} />
        <Groups last={last} />
        <Machine all={all} last={last} />
      </div>
      <Actions last={last} all={all} />
      <Tables last={last} all={all} />
      <Hot hot={hot} />
    </div>
  );
}

function total(values: Map<string, number>): number {
  return [...values.values()].reduce((sum, each) => sum + each, 0);
}

function valueOf(reading: Reading, name: string): number {
  return reading.values.get(name) ?? 0;
}

function times(all: Reading[]): string[] {
  return all.map((each) => new Date(each.at).toTimeString().slice(0, 8));
}

function Head({ all, last }: { all: Reading[]; last: Reading }) {
  const requests = byAction(last, REQUESTS);
  const errors = byAction(last, "isotone_errors_total");
  const rate = rates(all, (each) => total(byAction(each, REQUESTS)));
  const file = last.values.get("isotone_file_bytes");
  const facts: [string, string][] = [
    ["requests per second", brief(rate[rate.length - 1] ?? 0)],
    ["requests", count(total(requests))],
    ["errors", count(total(errors))],
    ["connections", count(valueOf(last, "isotone_connections"))],
    ["tables", count(valueOf(last, "isotone_tables"))],
    ["file", file === undefined ? "in memory" : size(file)],
    ["write-ahead log", file === undefined ? "–" : size(valueOf(last, "isotone_wal_bytes"))],
    ["disk free", last.values.has("isotone_disk_free_bytes") ? size(valueOf(last, "isotone_disk_free_bytes")) : "–"],
  ];
  return (
    <section class="facts" aria-label="Now">
      {facts.map(([name, value]) => (
        <div class="fact" key={name}>
          <span>{name}</span>
          <strong>{value}</strong>
        </div>
      ))}
    </section>
  );
}

function Requests({ all }: { all: Reading[] }) {
  const totals = byAction(all[all.length - 1]!, REQUESTS);
  const names = [...totals].sort(([, one], [, other]) => other - one).map(([name]) => name);
  const shown = names.slice(0, names.length > MOST ? MOST - 1 : MOST);
  const series: Series[] = shown.map((name) => ({ name, values: rates(all, (each) => byAction(each, REQUESTS).get(name) ?? 0) }));
  const rest = names.slice(shown.length);
  if (rest.length)
    series.push({
      name: `${rest.length} others`,
      values: rates(all, (each) => { const found = byAction(each, REQUESTS); return rest.reduce((sum, name) => sum + (found.get(name) ?? 0), 0); }),
    });
  if (!series.length) series.push({ name: "no request yet", values: all.map(() => 0) });
  return <LineChart title="Requests" unit="per second, by action" labels={times(all)} series={series} stacked />;
}

function Latencies({ all }: { all: Reading[] }) {
  const histograms = recentHistograms(all, LATENCY);
  const at = (share: number) => histograms.map((each) => quantile(each, share));
  const series: Series[] = [
    { name: "p50", values: at(0.5), hue: 1 },
    { name: "p95", values: at(0.95), hue: 2 },
    { name: "p99", values: at(0.99), hue: 3 },
  ];
  return <LineChart title="Latency" unit="of the last ten seconds, in the server" labels={times(all)} series={series} format={duration} />;
}

function Groups({ last }: { last: Reading }) {
  const buckets = histogram(last, undefined, "isotone_write_group_size");
  const all = buckets.reduce((sum, [, number]) => sum + number, 0);
  const bars = buckets.map(([bound, number], place) => {
    const from = place ? buckets[place - 1]![0] + 1 : 1;
    const name = bound === Infinity ? `over ${brief(from - 1)}` : from === bound ? `${bound}` : `${from} to ${bound}`;
    return { key: name, name, value: number };
  });
  const used = bars.slice(0, Math.max(4, bars.length - [...bars].reverse().findIndex((each) => each.value > 0)));
  return (
    <BarChart
      title="Writes committed together"
      unit={all ? `in ${count(all)} groups, each with one commit` : "none yet; each group needs one commit"}
      bars={all ? used : bars.slice(0, 4)}
    />
  );
}

function Machine({ all, last }: { all: Reading[]; last: Reading }) {
  const hasFile = last.values.has("isotone_wal_bytes");
  const series: Series[] = [{ name: "memory", values: all.map((each) => valueOf(each, "process_resident_memory_bytes")), hue: 6 }];
  if (hasFile) series.push({ name: "write-ahead log", values: all.map((each) => valueOf(each, "isotone_wal_bytes")), hue: 2 });
  const cpu = rates(all, (each) => valueOf(each, "process_cpu_seconds_total"));
  const now = cpu[cpu.length - 1];
  return <LineChart title="Memory" unit={`and ${now === null || now === undefined ? "–" : Math.round(now * 100)} % of a processor`} labels={times(all)} series={series} format={size} />;
}

function Actions({ all, last }: { all: Reading[]; last: Reading }) {
  const requests = [...byAction(last, REQUESTS)].sort(([, one], [, other]) => other - one);
  if (!requests.length)
    return (
      <div class="metrics-none">
        <h2>No program has sent a request yet</h2>
        <p>
          What arrives over HTTP is counted here: from AWS SDKs, the AWS CLI, Isotone elsewhere. What this page reads is not counted,
          as it does not go over the API. Try <code>isotone tables {location.origin}</code> in a terminal.
        </p>
      </div>
    );
  const errors = byAction(last, "isotone_errors_total");
  return (
    <section>
      <h2>Actions since the server started</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Actions">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">action</th>
              <th scope="col" class="number">requests</th>
              <th scope="col" class="number">per second now</th>
              <th scope="col" class="number">p50</th>
              <th scope="col" class="number">p99</th>
              <th scope="col" class="number">errors</th>
            </tr>
          </thead>
          <tbody>
            {requests.slice(0, 40).map(([name, number]) => {
              const buckets = histogram(last, undefined, LATENCY, name);
              const rate = rates(all.slice(-2), (each) => byAction(each, REQUESTS).get(name) ?? 0);
              const [half, most] = [quantile(buckets, 0.5), quantile(buckets, 0.99)];
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td class="number">{count(number)}</td>
                  <td class="number">{brief(rate[rate.length - 1] ?? 0)}</td>
                  <td class="number">{half === null ? "–" : duration(half)}</td>
                  <td class="number">{most === null ? "–" : duration(most)}</td>
                  <td class="number">{count(errors.get(name) ?? 0)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const TABLES = 40;

function Tables({ all, last }: { all: Reading[]; last: Reading }) {
  const uses = tableUses(last);
  if (!uses.length) return null;
  const before = all.length > 1 ? all[all.length - 2]! : null;
  const earlier = before ? tableUses(before) : [];
  const perSecond = (use: TableUse, value: (each: TableUse) => number) => {
    if (!before) return "–";
    const same = earlier.find((each) => each.region === use.region && each.table === use.table && each.index === use.index);
    return brief(Math.max(0, value(use) - (same ? value(same) : 0)) / ((last.at - before.at) / 1000));
  };
  const regions = new Set(uses.map((each) => each.region));
  const hasStreams = uses.some((each) => each.lag !== null);
  return (
    <section>
      <h2>Capacity units since the server started</h2>
      <p class="quiet">What DynamoDB would charge for the requests, including those of this page.</p>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Capacity units">
        <table class="grid table-uses">
          <thead>
            <tr>
              <th scope="col">table</th>
              <th scope="col" class="number">read</th>
              <th scope="col" class="number">per second now</th>
              <th scope="col" class="number">written</th>
              <th scope="col" class="number">per second now</th>
              {hasStreams && <th scope="col" class="number">stream lag</th>}
            </tr>
          </thead>
          <tbody>
            {uses.slice(0, TABLES).map((use) => (
              <tr key={`${use.region}/${use.table}/${use.index}`}>
                <th scope="row">
                  <UsedTable use={use} />
                  {regions.size > 1 && <span class="quiet"> {use.region}</span>}
                </th>
                <td class="number">{count(use.read)}</td>
                <td class="number">{perSecond(use, (each) => each.read)}</td>
                <td class="number">{count(use.written)}</td>
                <td class="number">{perSecond(use, (each) => each.written)}</td>
                {hasStreams && <td class="number">{use.lag === null ? "–" : duration(use.lag)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {uses.length > TABLES && <p class="quiet">and {count(uses.length - TABLES)} more</p>}
    </section>
  );
}

function UsedTable({ use }: { use: TableUse }) {
  if (use.table === OTHERS) return <>others, and deleted tables</>;
  return <a href={href(["t", use.table, "items"], { index: use.index || undefined })}>{use.index ? `${use.table} · ${use.index}` : use.table}</a>;
}

const KEYS = 20;

function Hot({ hot }: { hot: HotKeys | null }) {
  if (!hot) return null;
  const most = Math.max(...hot.keys.map((each) => each.reads + each.writes), 1);
  return (
    <section class="hot-keys">
      <h2>Hot keys</h2>
      <p class="quiet">
        {hot.keys.length
          ? `Partition keys of ${count(hot.looked_at)} of ${count(hot.requests)} requests in ${count(Math.round(hot.seconds))} s. `
          : "Partition keys that programs read and write appear here. "}
        Requests are sampled only while this page is open; of a busy server, only some are. Scans have no key.
      </p>
      {hot.keys.length > 0 && (
        <div class="scrolls" tabIndex={0} role="group" aria-label="Hot keys">
          <table class="grid">
            <thead>
              <tr>
                <th scope="col">partition key</th>
                <th scope="col">of</th>
                <th scope="col" class="number">reads</th>
                <th scope="col" class="number">writes</th>
                <th scope="col">per second</th>
              </tr>
            </thead>
            <tbody>
              {hot.keys.slice(0, KEYS).map((each) => {
                const [table = "", , index] = each.table.split("/");
                const all = each.reads + each.writes;
                return (
                  <tr key={`${each.table}/${each.key}`}>
                    <th scope="row"><code>{each.key}</code></th>
                    <td><a href={href(["t", table, "items"], { index })}>{index ? `${table} · ${index}` : table}</a></td>
                    <td class="number">{count(each.reads)}</td>
                    <td class="number">{count(each.writes)}</td>
                    <td>
                      <span class="share"><span style={{ width: `${(100 * all) / most}%` }} /></span>
                      {brief(all / Math.max(1, hot.seconds))}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      {hot.keys.length > KEYS && <p class="quiet">and {count(hot.keys.length - KEYS)} more</p>}
    </section>
  );
}

function NoMetrics({ session, reason }: { session: Session; reason: string }) {
  const isAws = session.target.startsWith("dynamodb");
  return (
    <div class="over">
      <div class="empty wide">
        <h2>There are no metrics of {session.target}</h2>
        <p>{reason}</p>
        <p>
          {isAws
            ? "AWS keeps them in CloudWatch, and hot keys in its Contributor Insights."
            : "A server that isotone serve runs counts requests, latencies and keys; open its own workbench, or one on its machine."}{" "}
          <a class="more-link" href={href(["structures"])}>Structures</a> and the views of tables work without them.
        </p>
      </div>
    </div>
  );
}
