/** The dialog of keyboard shortcuts: those of the view that is shown. */

import { activeShortcuts, keyName } from "../shortcuts";
import { Dialog } from "./dialog";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" className="help" onClose={onClose}>
      <h2>Keyboard</h2>
      <dl>
        {activeShortcuts().map((each) => (
          <div key={each.title}>
            <dt>
              {each.keys.map((key) => (
                <kbd key={key}>{keyName(key)}</kbd>
              ))}
            </dt>
            <dd>{each.title}</dd>
          </div>
        ))}
      </dl>
      <button autoFocus onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}
