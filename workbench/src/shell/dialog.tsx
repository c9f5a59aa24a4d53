/** A dialog above the page, of the browser itself: it keeps the focus, and Esc closes it. */

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  className?: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ title, className = "", onClose, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  // A layout effect, whose end is that of the dialog: a frame later the focus may be where the user has put it.
  useLayoutEffect(() => {
    const dialog = element.current;
    const focused = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (focused instanceof HTMLElement && focused.isConnected) focused.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={className}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === element.current && onClose()}
    >
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
