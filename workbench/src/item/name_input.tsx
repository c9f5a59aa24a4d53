/** The name of an attribute or of a map's member; refuses an empty one and one that is taken, beside the field.
 *
 * Until it is put right, the form that it is in cannot be sent. */

import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

type Tell = (field: object, fault: string | null) => void;

/** Where the names of a form tell what is wrong with them. */
export const NameFaults = createContext<Tell>(() => undefined);

/** The first fault of the names of a form, and what they tell it to. */
export function useNameFaults(): { fault: string | null; tell: Tell } {
  const [faults, setFaults] = useState<Map<object, string>>(new Map());
  const tell = useRef<Tell>((field, fault) =>
    setFaults((all) => {
      if ((all.get(field) ?? null) === fault) return all;
      const next = new Map(all);
      if (fault === null) next.delete(field);
      else next.set(field, fault);
      return next;
    }),
  );
  return { fault: [...faults.values()][0] ?? null, tell: tell.current };
}

interface Props {
  label: string;
  name: string;
  /** The names that are there, this one among them. */
  taken: string[];
  onName: (name: string) => void;
}

export function NameInput({ label, name, taken, onName }: Props) {
  const [text, setText] = useState(name);
  const tell = useContext(NameFaults);
  const field = useRef({}).current;
  const fault =
    text === name ? null : text === "" ? "a name is required" : taken.includes(text) ? `“${text}” is taken` : null;
  useEffect(() => setText(name), [name]);
  useEffect(() => tell(field, fault), [fault]);
  useEffect(() => () => tell(field, null), []);
  return (
    <span class="name-input">
      <input
        class="member-name"
        aria-label={label}
        aria-invalid={fault !== null}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={() => fault === null && text !== name && onName(text)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || fault === null) return;
          event.stopPropagation();
          setText(name);
        }}
      />
      {fault && (
        <span class="wrong" role="alert">
          {fault}
        </span>
      )}
    </span>
  );
}
