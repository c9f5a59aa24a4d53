/** The tour: for each strategy its story, the query, what it cost, the collection that it read, and the code. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { CallError } from "../api";
import { change, go, href, route } from "../router";
import { Failure } from "../shell/failure";
import { nearest, NotFound } from "../shell/not_found";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { count, plural } from "../values";
import { Code } from "./code";
import { Drawing } from "./drawing";
import { act, ask, type Asked, type Chapter, chapters, type Cost, loadChapters, problem, seen, type TourParameter } from "./tour_calls";
import "../styles/tour.css";

export function TourPage() {
  const all = useStore(chapters);
  const failed = useStore(problem);
  const { path } = useStore(route);
  useEffect(loadChapters, []);
  if (failed) return <div class="over"><Failure error={failed} onRetry={() => { problem.set(null); loadChapters(); }} /></div>;
  if (!all) return <div class="tour"><div class="bone" /><div class="bone" /></div>;
  const place = all.findIndex((each) => each.name === path[1]);
  if (place >= 0) return <ChapterPage key={all[place]!.name} all={all} place={place} />;
  return path[1] === undefined ? <Contents all={all} /> : <NoChapter name={path[1]} all={all} />;
}

function NoChapter({ name, all }: { name: string; all: Chapter[] }) {
  const title = (each: string) => all.find((chapter) => chapter.name === each)!.title;
  const names = nearest(name, all.map((each) => each.name));
  return (
    <NotFound title={`The tour has no chapter ${name}`} there="Chapters" links={names.map((each) => ({ title: title(each), path: ["tour", each] }))}>
      It has {all.length} chapters; <a href={href(["tour"])}>see all of them in order</a>.
    </NotFound>
  );
}

function Contents({ all }: { all: Chapter[] }) {
  const done = useStore(seen);
  const next = all.find((each) => !done.includes(each.name)) ?? all[0]!;
  const begin = () => go(["tour", next.name]);
  useShortcuts([{ keys: ["ArrowRight", "Enter"], title: "Begin the tour", run: begin }]);
  return (
    <div class="tour">
      <div class="tour-inner">
        <header class="tour-hero">
          <h2>See your DynamoDB table before you pay for it</h2>
          <p>
            Every fast query is a short walk along sorted keys. Here are {all.length} of them, each on a live table in
            this process: what is stored, what the query reads, what it costs, and the code that does it.
          </p>
          <button class="primary large" onClick={begin}>
            {done.length && done.length < all.length ? `Go on with “${next.title}”` : "Begin"} <kbd>→</kbd>
          </button>
        </header>
        {groups(all).map(([group, members]) => (
          <section key={group} class="tour-group">
            <h3>{group}</h3>
            <ol>
              {members.map((each) => (
                <li key={each.name}>
                  <a href={href(["tour", each.name])} class={done.includes(each.name) ? "seen" : ""}>
                    <span class="tour-number">{all.indexOf(each) + 1}</span>
                    <span class="tour-title">{each.title}</span>
                    {done.includes(each.name) && <span class="tour-check" aria-label="seen">✓</span>}
                  </a>
                </li>
              ))}
            </ol>
          </section>
        ))}
      </div>
    </div>
  );
}

function groups(all: Chapter[]): [string, Chapter[]][] {
  const found = new Map<string, Chapter[]>();
  for (const each of all) found.set(each.group, [...(found.get(each.group) ?? []), each]);
  return [...found];
}

function ChapterPage({ all, place }: { all: Chapter[]; place: number }) {
  const chapter = all[place]!;
  const { query } = useStore(route);
  const done = useStore(seen);
  const [result, setResult] = useState<Asked | null>(null);
  const [failure, setFailure] = useState<CallError | null>(null);
  const [times, setTimes] = useState(0);
  const top = useRef<HTMLDivElement>(null);
  const next = all[place + 1];
  const previous = all[place - 1];
  const given = JSON.stringify(chapter.parameters.map((each) => query[each.name]));

  useEffect(() => {
    if (!seen.value.includes(chapter.name)) seen.update((names) => [...names, chapter.name]);
    top.current?.scrollTo(0, 0);
  }, [chapter.name]);

  useEffect(() => {
    const controller = new AbortController();
    const values: Record<string, string> = {};
    for (const each of chapter.parameters) {
      const value = query[each.name];
      if (value !== undefined) values[each.name] = value;
    }
    ask(chapter.name, values, controller.signal).then(
      (found) => {
        setResult(found);
        setFailure(null);
      },
      (error: CallError) => {
        if (controller.signal.aborted) return;
        setResult(null);
        setFailure(error);
      },
    );
    return () => controller.abort();
  }, [chapter.name, given, times]);

  const forward = () => go(next ? ["tour", next.name] : ["tour"]);
  const back = () => go(previous ? ["tour", previous.name] : ["tour"]);
  useShortcuts([
    { keys: ["ArrowRight"], title: "Next chapter", run: forward },
    { keys: ["ArrowLeft"], title: "Previous chapter", run: back },
    { keys: ["Escape"], title: "All chapters", run: () => go(["tour"]) },
  ]);
  const tryIt = async () => {
    try {
      await act(chapter.name);
      setTimes(times + 1);
    } catch (error) {
      setFailure(error as CallError);
    }
  };
  return (
    <div class="tour" ref={top} tabIndex={-1}>
      <nav class="tour-bar" aria-label="Chapters">
        <a href={href(["tour"])} class="tour-all">All chapters</a>
        <div class="tour-steps">
          {all.map((each, number) => (
            <a
              key={each.name}
              href={href(["tour", each.name])}
              title={`${number + 1}. ${each.title}`}
              aria-label={`${number + 1}. ${each.title}`}
              aria-current={number === place ? "step" : undefined}
              class={`${number === place ? "current" : ""} ${done.includes(each.name) ? "seen" : ""} ${number && all[number - 1]!.group !== each.group ? "begins" : ""}`}
            />
          ))}
        </div>
        <button class="icon" onClick={back} aria-label="Previous chapter" title="Previous chapter (←)">←</button>
        <button class="icon" onClick={forward} aria-label="Next chapter" title="Next chapter (→)">→</button>
      </nav>
      <div class="tour-inner">
        <div class="tour-head">
          <header>
            <p class="tour-where">
              {chapter.group} · {place + 1} of {all.length}
            </p>
            <h2>{chapter.title}</h2>
            <p class="tour-story">{chapter.story.split("`").map((part, number) => (number % 2 ? <code>{part}</code> : part))}</p>
          </header>
          <CostPanel result={result} chapter={chapter} />
        </div>
        {(chapter.parameters.length > 0 || chapter.act) && (
          <form class="tour-question" onSubmit={(event) => event.preventDefault()}>
            {chapter.parameters.map((each) => (
              <ParameterField key={each.name} parameter={each} value={query[each.name] ?? each.default} />
            ))}
            <span class="space" />
            {chapter.act && (
              <button type="button" class="primary" onClick={() => void tryIt()} title={chapter.act}>
                {chapter.act_title}
              </button>
            )}
          </form>
        )}
        {failure && <Failure error={failure} />}
        {result?.answer && <AnswerTable answer={result.answer} />}
        {result === null && !failure && <div class="drawing waiting" />}
        {result?.collections.map((each, number) => <Drawing key={number} drawn={each} />)}
        <CodePanel chapter={chapter} query={query} result={result} />
        <footer class="tour-foot">
          {previous ? <a href={href(["tour", previous.name])}><small>← Before</small>{previous.title}</a> : <span />}
          {next ? (
            <a href={href(["tour", next.name])} class="tour-next"><small>Next →</small>{next.title}</a>
          ) : (
            <a href={href(["tour"])} class="tour-next"><small>The end</small>All chapters</a>
          )}
        </footer>
      </div>
    </div>
  );
}

function CostPanel({ result, chapter }: { result: Asked | null; chapter: Chapter }) {
  const cost = result?.cost;
  const other = result?.instead;
  return (
    <aside class="tour-cost" aria-label="What it cost">
      <div class="tour-figures">
        <Figure value={cost && count(cost.scanned)} name="items read" />
        <Figure value={cost && count(cost.units)} name="units" />
        <Figure value={cost && count(cost.requests)} name={cost?.requests === 1 ? "request" : "requests"} />
      </div>
      {cost && cost.returned < cost.scanned && (
        <p class="tour-waste">
          {count(cost.returned)} of {count(cost.scanned)} were returned: the filter dropped the rest after they were paid for.
        </p>
      )}
      {chapter.instead && (
        <div class="tour-compare">
          <Bar name="this key" cost={cost} most={other} />
          <Bar name={chapter.instead_title} cost={other ?? undefined} most={other} poor />
        </div>
      )}
      <p class="tour-measured">measured just now{cost ? `, in ${cost.milliseconds.toFixed(1)} ms` : ""}</p>
    </aside>
  );
}

function Figure({ value, name }: { value: string | undefined; name: string }) {
  return (
    <div>
      <strong>{value ?? "…"}</strong>
      <span>{name}</span>
    </div>
  );
}

function Bar({ name, cost, most, poor }: { name: string; cost: Cost | undefined; most: Cost | null | undefined; poor?: boolean }) {
  const share = cost && most ? Math.max(1, Math.min(100, (100 * cost.scanned) / Math.max(1, most.scanned, cost.scanned))) : 0;
  return (
    <div class={poor ? "bar poor" : "bar"}>
      <span class="bar-name">{name}</span>
      <span class="bar-track"><span class="bar-fill" style={{ width: `${share}%` }} /></span>
      <span class="bar-value">{cost ? `${plural(cost.scanned, "item")}, ${count(cost.units)} units` : "…"}</span>
    </div>
  );
}

function ParameterField({ parameter, value }: { parameter: TourParameter; value: string }) {
  const label = parameter.name.replace(/_/g, " ");
  const set = (text: string) => change({ [parameter.name]: text === parameter.default ? null : text }, { replace: true });
  return (
    <label>
      <span>{label}</span>
      {parameter.kind === "choice" ? (
        <select value={value} onChange={(event) => set(event.currentTarget.value)}>
          {parameter.choices.map((each) => <option key={each}>{each}</option>)}
        </select>
      ) : (
        <input
          type="text"
          inputMode={parameter.kind === "integer" ? "numeric" : "text"}
          value={value}
          size={Math.max(6, Math.min(32, parameter.default.length + 1))}
          spellcheck={false}
          onChange={(event) => set(event.currentTarget.value)}
        />
      )}
    </label>
  );
}

function AnswerTable({ answer }: { answer: NonNullable<Asked["answer"]> }) {
  return (
    <section class="tour-answer">
      <h3>The answer</h3>
      <div class="tour-scroll">
        <table class="grid">
          <thead>
            <tr>{answer.columns.map((each) => <th key={each} scope="col">{each}</th>)}</tr>
          </thead>
          <tbody>
            {answer.rows.map((row, place) => (
              <tr key={place}>{row.map((value, column) => <td key={column}>{value}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function CodePanel({ chapter, query, result }: { chapter: Chapter; query: Record<string, string>; result: Asked | null }) {
  const given = useMemo(
    () => chapter.parameters.map((each) => `${each.name} = ${literal(each, query[each.name] ?? each.default)}`).join("\n"),
    [chapter, query],
  );
  return (
    <section class="tour-codes">
      <div class="tour-pair">
        <div>
          <h3>With Isotone</h3>
          <Code title="The query with Isotone" text={`${given}${given ? "\n\n" : ""}${chapter.question}`} />
        </div>
        <div>
          <h3>By hand, with boto3</h3>
          <Code title="The same by hand, with boto3" text={chapter.by_hand} />
        </div>
      </div>
      <details>
        <summary>The model, which declares the keys once</summary>
        <Code title="The model" text={chapter.model} />
      </details>
      {chapter.instead && (
        <details>
          <summary>The comparison: {chapter.instead_title}</summary>
          <Code title="The comparison" text={chapter.instead} />
        </details>
      )}
      {result?.refused && chapter.refuse && (
        <div class="tour-refused">
          <h3>What Isotone refuses</h3>
          <Code title="Code that is refused" text={chapter.refuse} />
          <p>{result.refused}</p>
        </div>
      )}
    </section>
  );
}

function literal(parameter: TourParameter, value: string): string {
  if (parameter.kind === "integer") return value;
  if (parameter.kind === "number") return `Decimal("${value}")`;
  if (parameter.kind === "time") return `datetime.fromisoformat("${value}")`;
  return JSON.stringify(value);
}
