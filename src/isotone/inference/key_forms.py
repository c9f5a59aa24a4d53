"""The form of a key attribute: literals and fields, and its declaration with a separator.

`key_recognition` finds the form in the keys of a table.

`["ORDER|", day, "|", shop]` is declared as `"ORDER", day, shop` with the separator `|`. If no single separator joins
all parts, the form is declared with `separator=""`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from isotone.codec import readable
from isotone.errors import MalformedKey, UsageError
from isotone.inference.field_types import quoted
from isotone.inference.key_styles import ESCAPED, RAW, KeyStyle

_SEPARATORS: Final = ("#", "|", "::", ":", "/", "_", "-", ".", "~", ";", ",")


@dataclass(frozen=True, slots=True)
class FormField:
    """A field in a key: the name of its source, and how its values are written."""

    source: str
    style: KeyStyle


@dataclass(frozen=True)
class KeyForm:
    """The form of a key attribute: literals, including separators, and fields between them."""

    parts: tuple[str | FormField, ...]

    @property
    def places(self) -> list[FormField]:
        return [part for part in self.parts if isinstance(part, FormField)]

    @cached_property
    def separator(self) -> str:
        """The separator of the declaration; empty if no single separator joins the parts."""
        literals = self._literals()
        whole = "".join(part for part in self.parts if isinstance(part, str))
        if "$" in whole:
            candidates = [each for each in _SEPARATORS if each != "#"]
        else:
            candidates = list(_SEPARATORS)
        between = Counter(literals[1:-1])
        candidates.sort(key=lambda each: -between[each])
        for separator in candidates:
            if _joins(separator, literals):
                return separator
        return ""

    @cached_property
    def declared(self) -> tuple[str | FormField, ...]:
        """The parts in the declaration: literals without the separators next to fields."""
        separator = self.separator
        parts: list[str | FormField] = []
        literals = self._literals()
        for number, literal in enumerate(literals):
            text = literal
            if separator and number and text.startswith(separator):
                text = text.removeprefix(separator)
            if separator and number < len(literals) - 1 and text.endswith(separator):
                text = text.removesuffix(separator)
            if text:
                parts.append(text)
            if number < len(literals) - 1:
                parts.append(self.places[number])
        return tuple(parts)

    def _literals(self) -> list[str]:
        """The texts before, between and after the fields."""
        literals = [""]
        for part in self.parts:
            if isinstance(part, str):
                literals[-1] += part
            else:
                literals.append("")
        return literals

    @cached_property
    def template(self) -> readable.Template | None:
        """The template that the model makes from the declaration; None if it refuses the form."""
        parts = [
            part if isinstance(part, str) else _codec(part.style, self.separator)
            for part in self.declared
        ]
        try:
            return readable.Template(parts, self.separator)
        except UsageError:
            return None

    def parse(self, text: str) -> dict[str, Any] | None:
        """The values of a key, by source; None if the key has another form."""
        if self.template is None:
            return None
        try:
            values = self.template.parse(text)
        except MalformedKey:
            return None
        found: dict[str, Any] = {}
        for place, value in zip(self.places, values, strict=True):
            if found.setdefault(place.source, value) != value:
                return None  # the key has two values for one field
        return found

    def reads(self, text: str, values: Mapping[str, Any]) -> bool:
        """Whether the key of an item with these values, by source, has this form."""
        found = self.parse(text)
        if found is None or self.template is None:
            return False
        for place in self.places:
            known = values.get(place.source)
            other = found[place.source]
            if known not in (None, other) and place.style.encode(known) != place.style.encode(
                other
            ):
                return False
        return True

    def with_escapes(self) -> KeyForm:
        """The same form with escaped instead of raw texts, which end at the separator."""
        return KeyForm(
            tuple(
                replace(
                    part, style=replace(ESCAPED, options=part.style.options, note=part.style.note)
                )
                if isinstance(part, FormField)
                and part.style.expression == RAW.expression
                and part.style.kind == "str"
                and not part.style.options
                else part
                for part in self.parts
            )
        )

    def expressions(self, names: Mapping[str, str]) -> list[str]:
        """The arguments of `Key(…)` or `.sort(…)`.

        With a separator other than `#`, texts are raw but end at the separator; raw(…) lets the last one contain it.
        """
        found = []
        for number, part in enumerate(self.declared):
            if isinstance(part, str):
                found.append(quoted(part))
                continue
            is_last = number == len(self.declared) - 1 and self.separator != ""
            is_raw = part.style.kind == "str" and not is_last
            is_plain = is_raw and self.separator != readable.SEPARATOR
            expression = "{}" if is_plain else part.style.expression
            found.append(expression.format(names[part.source]))
        return found

    def shown(self, names: Mapping[str, str]) -> str:
        """The form as text for a comment: `ORDER#{number}`."""
        return "".join(
            part if isinstance(part, str) else f"{{{names[part.source]}}}" for part in self.parts
        )


def _joins(separator: str, literals: Sequence[str]) -> bool:
    """Whether a separator is next to every place, on both sides."""
    if len(literals) == 1:
        return separator == readable.SEPARATOR and "$" not in literals[0]
    first, *between, last = literals
    return (
        (not first or (first.endswith(separator) and first != separator))
        and (not last or (last.startswith(separator) and last != separator))
        and all(_is_joint(separator, text) for text in between)
    )


def _is_joint(separator: str, text: str) -> bool:
    if text == separator:
        return True
    inner = text.removeprefix(separator).removesuffix(separator)
    return text == f"{separator}{inner}{separator}" and bool(inner)


def _codec(style: KeyStyle, separator: str) -> readable.Codec[Any]:
    """The codec that the model uses for a style, given the separator."""
    codec = style.codec
    if separator != readable.SEPARATOR and isinstance(codec, readable.Text) and codec.ascending:
        return readable.RawText(codec.case, separator)
    return codec


def ambiguity(
    ours: Mapping[str, KeyForm], theirs: Mapping[str, KeyForm], key: Iterable[str]
) -> str | None:
    """Why the keys of two entities could be equal; None if an attribute distinguishes them.

    An attribute without a form, which holds one plain field, distinguishes nothing.
    """
    reasons = []
    for name in key:
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None or one.template is None or other.template is None:
            continue
        reason = one.template.is_ambiguous_with(other.template)
        if reason is None:
            return None
        reasons.append(reason)
    return "; ".join(reasons) or "nothing in their keys tells them apart"
