/** The dialog Copy as (`c`): a request as code to copy, which `isotone/workbench/code.py` writes. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError, type Request, type Snippet } from "../api";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";

interface Props {
  action: string;
  request: Request;
  /** Code that the model gives for it. */
  pattern?: string | null;
  onClose: () => void;
}

export function CopyDialog({ action, request, pattern, onClose }: Props) {
  const [snippets, setSnippets] = useState<Snippet[]>([]);
  const [chosen, setChosen] = useState(0);
  const [error, setError] = useState<CallError | null>(null);
  useEffect(() => {
    call<{ snippets: Snippet[] }>("code", { action, request, origin: location.origin }).then((answer) => {
      const own = pattern ? [{ name: "Isotone model", language: "python", text: pattern }] : [];
      setSnippets([...own, ...answer.snippets]);
    }, setError);
  }, []);
  const shown = snippets[chosen];
  const copy = async () => {
    if (!shown) return;
    try {
      await navigator.clipboard.writeText(shown.text);
      notify(`Copied as ${shown.name}`);
    } catch {
      notify("The browser does not allow to copy; select the text instead", { failed: true });
    }
  };
  return (
    <Dialog title="Copy as code" className="copy" onClose={onClose}>
      <div class="chips" role="group" aria-label="Language">
        {snippets.map((each, place) => (
          <button key={each.name} class={place === chosen ? "chip current" : "chip"} aria-pressed={place === chosen} onClick={() => setChosen(place)}>
            {each.name}
          </button>
        ))}
      </div>
      {error ? <Failure error={error} /> : <pre class="code" tabIndex={0}>{shown?.text ?? " "}</pre>}
      <div class="actions">
        <button onClick={onClose}>Close</button>
        <button class="primary" autoFocus onClick={() => void copy()}>Copy</button>
      </div>
    </Dialog>
  );
}
