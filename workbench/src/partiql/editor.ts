/** The editor of statements (CodeMirror): completion, underlined errors; a chunk that is loaded with the first statement.
 *
 * Within a shadow root CodeMirror adopts its style sheets; in the document it would write a <style> element, which the
 * page's policy forbids.
 */

import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const KEYWORDS =
  "SELECT FROM WHERE ORDER BY ASC DESC AND OR NOT IN BETWEEN IS MISSING NULL INSERT INTO VALUE UPDATE SET REMOVE DELETE RETURNING ALL NEW OLD MODIFIED EXISTS TRUE FALSE";
const FUNCTIONS = "begins_with contains size attribute_type set_add set_delete list_append";
const keywords = new Set(KEYWORDS.toLowerCase().split(" "));
const functions = new Set(FUNCTIONS.split(" "));

const partiql = StreamLanguage.define<unknown>({
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match(/--.*/)) return "comment";
    if (stream.match(/'(?:[^']|'')*'?/)) return "string";
    if (stream.match(/"(?:[^"]|"")*"?/)) return "propertyName";
    if (stream.match(/-?\d+(\.\d+)?([eE][+-]?\d+)?/)) return "number";
    const word = stream.match(/[A-Za-z_][\w]*/);
    if (word) {
      const text = (word as RegExpMatchArray)[0].toLowerCase();
      return keywords.has(text) ? "keyword" : functions.has(text) ? "variableName.function" : "variableName";
    }
    stream.next();
    return null;
  },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--hue-0)", fontWeight: "600" },
  { tag: tags.string, color: "var(--hue-4)" },
  { tag: tags.number, color: "var(--hue-5)" },
  { tag: tags.propertyName, color: "var(--hue-1)" },
  { tag: tags.function(tags.variableName), color: "var(--hue-6)" },
  { tag: tags.comment, color: "var(--faint)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "transparent", fontSize: "13px", minHeight: "84px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", padding: "12px 14px", caretColor: "var(--accent)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft) !important" },
  ".cm-placeholder": { color: "var(--faint)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", border: "1px solid var(--line-strong)", borderRadius: "6px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent-soft)", color: "var(--text)" },
});

/** Text over a selection: the browser would keep the look of what it replaces as an inline style, which is forbidden. */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const isTyping = event.inputType === "insertText" && event.data !== null && !view.composing;
    if (!isTyping || view.state.selection.main.empty) return false;
    event.preventDefault();
    view.dispatch(view.state.update(view.state.replaceSelection(event.data!), { userEvent: "input.type" }));
    return true;
  },
});

export interface Names {
  tables: string[];
  attributes: string[];
}

export interface Editor {
  text(): string;
  setText(text: string): void;
  /** Underlines a place, by line, column (both from 1) and length; null for none. */
  mark(place: { line: number; column: number; length: number; message: string } | null): void;
  setNames(names: Names): void;
  focus(): void;
  destroy(): void;
}

export function makeEditor(host: HTMLElement, initial: string, onRun: () => void): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const completion = new Compartment();
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: initial,
      extensions: [
        history(),
        drawSelection(),
        bracketMatching(),
        partiql,
        syntaxHighlighting(colours),
        look,
        replacing,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "PartiQL statement" }),
        placeholder("SELECT * FROM …"),
        completion.of([]),
        Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (onRun(), true) }])),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    mark(place) {
      const diagnostics = [];
      if (place && place.line <= view.state.doc.lines) {
        const line = view.state.doc.line(place.line);
        const from = Math.min(line.from + place.column - 1, view.state.doc.length);
        const to = Math.min(from + Math.max(1, place.length), view.state.doc.length);
        diagnostics.push({ from: Math.min(from, to - 1 < 0 ? 0 : to), to, severity: "error" as const, message: place.message });
      }
      view.dispatch(setDiagnostics(view.state, diagnostics));
    },
    setNames: (names) =>
      view.dispatch({ effects: completion.reconfigure(autocompletion({ override: [completer(names)], icons: false })) }),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}

function completer(names: Names) {
  const options = [
    ...KEYWORDS.split(" ").map((label) => ({ label, type: "keyword", boost: -1 })),
    ...FUNCTIONS.split(" ").map((label) => ({ label, type: "function", apply: `${label}(` })),
    ...names.tables.map((label) => ({ label, type: "class", detail: "table", apply: quoted(label) })),
    ...names.attributes.map((label) => ({ label, type: "property", detail: "attribute", apply: quoted(label) })),
  ];
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/"?[\w.-]*/);
    if (!word || (word.from === word.to && !context.explicit)) return null;
    return { from: word.from, options, validFor: /^"?[\w.-]*$/ };
  };
}

function quoted(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) && !keywords.has(name.toLowerCase()) ? name : `"${name.replaceAll('"', '""')}"`;
}
