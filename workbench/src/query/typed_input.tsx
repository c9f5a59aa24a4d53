/** The input of a key's value in the query bar, of the key's type; checked before it is sent. */

import type { AttributeValue } from "../api";
import { wrongNumber } from "../values";

interface Props {
  label: string;
  type: "S" | "N" | "B";
  text: string;
  onText: (text: string) => void;
  placeholder?: string;
  disabled?: boolean;
}

export function TypedInput({ label, type, text, onText, placeholder, disabled }: Props) {
  const wrong = text === "" ? null : wrongText(type, text);
  return (
    <span class="typed">
      <input
        aria-label={label}
        aria-invalid={wrong !== null}
        title={wrong ?? undefined}
        value={text}
        placeholder={placeholder ?? (type === "N" ? "number" : type === "B" ? "Base64" : "text")}
        inputMode={type === "N" ? "decimal" : "text"}
        spellcheck={false}
        autocomplete="off"
        disabled={disabled}
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {wrong && <span class="wrong">{wrong}</span>}
    </span>
  );
}

export function wrongText(type: string, text: string): string | null {
  if (type === "N") return wrongNumber(text);
  if (type === "B" && !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return "not Base64";
  return null;
}

export function textOf(value: AttributeValue | null | undefined): string {
  if (!value) return "";
  return String(Object.values(value)[0]);
}
