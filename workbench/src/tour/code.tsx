/** Python with its words coloured: enough for the short pieces of the tour. */

const TOKEN =
  /(#[^\n]*)|([fr]?"""[\s\S]*?"""|[fr]?"(?:\\.|[^"\\\n])*"|[fr]?'(?:\\.|[^'\\\n])*')|\b(class|def|return|for|in|if|else|while|and|or|not|import|from|lambda|None|True|False|assert|break|is|with)\b|\b(\d[\d_]*(?:\.\d+)?)\b|\b([A-Z][A-Za-z]+)\b/g;
const KINDS = ["comment", "string", "keyword", "digits", "type"];

export function Code({ text, title }: { text: string; title: string }) {
  const parts: preact.ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    parts.push(<span class={`py-${kind}`}>{match[0]}</span>);
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return (
    <pre class="tour-code" tabIndex={0} aria-label={title}>
      <code>{parts}</code>
    </pre>
  );
}
