"""Templates: the parts of a string key, and the conditions that select keys by them.

A template is a sequence of literals and codecs, which a separator joins, `#` if no other is declared:

    Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])     CUSTOMER#36ab#ORDER#99842
    Template(["user", RawText(), "post", Natural(999)], separator=":")        user:ann:post:007
    Template(["v", Natural(99), "_", RawText()], separator="")                v01_draft

Keys of one template sort by the first component, then by the second, and so on, each in its direction.
Where a component cannot keep that (`delimiting`), it can be asked for by equality, and by what it begins
with, but not for a range. No component holds what ends it, so a key is read back in one way only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isotone.codec.readable.delimiting import (
    Part,
    bound,
    check_literals,
    ends_as_begins,
    keeps_order,
    literals_between,
    pieces,
    stops,
    title,
)
from isotone.codec.readable.enclosing import fitting, has_text
from isotone.codec.readable.interface import ABOVE_SEPARATOR, SEPARATOR, Codec
from isotone.codec.readable.overlap import common_key
from isotone.codec.readable.selection import (
    Component,
    Operator,
    Selection,
    beyond,
    check_operands,
    nothing,
    under,
    without_empty_texts,
)
from isotone.errors import MalformedKey, Unanswerable, UsageError

_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f$\ud800-\udfff]")
_FORBIDDEN_BY_HAND: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Template:
    """The form of a string key.

    Raises `UsageError` for no parts, for a literal with `$`, a control character or half a
    surrogate pair, and for a component whose end nothing would tell. Only where the separator is
    `#` is `$` refused: there it closes ranges.

    >>> from isotone.codec.readable import Natural, Text
    >>> orders = Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])
    >>> orders.render(["36ab", 157])
    'CUSTOMER#36ab#ORDER#99842'
    >>> orders.parse("CUSTOMER#36ab#ORDER#99842")
    ('36ab', 157)
    """

    parts: tuple[Part, ...]
    separator: str
    codecs: tuple[Codec[Any], ...] = field(init=False, repr=False, compare=False)
    literals: tuple[str, ...] = field(init=False, repr=False, compare=False)
    pieces: tuple[Part, ...] = field(init=False, repr=False, compare=False)
    _stops: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, parts: Sequence[Part], separator: str = SEPARATOR) -> None:
        _check(parts, separator)
        literals = literals_between(parts, separator)
        ends = stops(literals, separator)
        bound_parts, codecs = _bound(parts, ends)
        set_ = object.__setattr__
        set_(self, "separator", separator)
        set_(self, "parts", tuple(bound_parts))
        set_(self, "codecs", tuple(codecs))
        set_(self, "literals", tuple(literals))
        set_(self, "pieces", pieces(bound_parts, separator))
        set_(self, "_stops", tuple(ends))
        set_(self, "_forms", tuple(_forms(literals)))

    def __str__(self) -> str:
        return self.separator.join(
            part if isinstance(part, str) else f"{{{title(part)}}}" for part in self.parts
        )

    @property
    def width(self) -> int | None:
        """The number of characters of a key, where every key has as many."""
        widths = [codec.width for codec in self.codecs]
        known = [width for width in widths if width is not None]
        return sum(known) + sum(map(len, self.literals)) if len(known) == len(widths) else None

    def render(self, values: Sequence[Any]) -> str:
        """The key of one value for each codec. Raises what the codecs' `encode` does."""
        if len(values) != len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        return self._forms[-1] % tuple(map(_encoded, self.codecs, values))

    def prefix(self, values: Sequence[Any] = ()) -> str:
        """What all keys with these leading values begin with: up to the next component.

        It ends in the separator, or is empty where the first part is a component without a value,
        or is the whole key where no value is missing.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["CUSTOMER", Text(), "ORDER", Natural(9)]).prefix(["36ab"])
        'CUSTOMER#36ab#ORDER#'
        """
        if len(values) > len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        return self._forms[len(values)] % tuple(map(_encoded, self.codecs, values))

    def bounds(self, values: Sequence[Any] = ()) -> tuple[str, str | None]:
        """The least and the greatest text, both included, between which these keys alone lie.

        The greatest is None where there is no end: where the prefix is empty.
        """
        prefix = self.prefix(values)
        if len(values) == len(self.codecs):
            return prefix, prefix
        return prefix, beyond(prefix) if prefix else None

    def parse(self, text: str) -> tuple[Any, ...]:
        """The values of a key. Raises `MalformedKey` for a key that the template never writes."""
        values, at = [], 0
        for codec, literal, stop in zip(self.codecs, self.literals, self._stops, strict=False):
            start = at + len(literal)
            if not text.startswith(literal, at):
                raise MalformedKey(f"the key {text!r} is not of the form {self}")
            at = _end(text, start, codec.width, stop)
            try:
                values.append(codec.decode(text[start:at]))
            except MalformedKey as error:
                raise MalformedKey(f"the key {text!r} is not {self}: {error}") from None
        if text[at:] != self.literals[-1]:
            raise MalformedKey(f"the key {text!r} is not of the form {self}")
        return tuple(values)

    def reads(self, text: str) -> bool:
        """Whether a key is of this form."""
        try:
            self.parse(text)
        except MalformedKey:
            return False
        return True

    def keeps_order(self, place: int) -> bool:
        """Whether keys sort by the component in a place, so that it can be asked for a range.

        >>> from isotone.codec.readable import Day, RawText
        >>> [Template(["USER", RawText(), Day()]).keeps_order(place) for place in (0, 1)]
        [False, True]
        """
        return keeps_order(self.codecs[place], self._stops[place])

    def select(
        self,
        equal: Sequence[Any] = (),
        operator: Operator | None = None,
        operands: Sequence[Any] = (),
    ) -> Selection:
        """The condition for the keys whose leading values are `equal`, and whose next satisfies
        the operator.

        Values beyond what a component was declared for, or finer, are compared as any others
        (`enclosing`). Raises `Unanswerable` for a range of a component that keeps no order,
        `UsageError` where there is no next one or the operator does not fit it, and what `encode` does.

        >>> from isotone.codec.readable import Day, Text
        >>> Template([Text(), Day()]).select(["CANCELLED"]).operands
        ('CANCELLED#',)
        """
        check_operands(operator, tuple(operands))
        if not all(self.has_text(place, value) for place, value in enumerate(equal)):
            return nothing(ABOVE_SEPARATOR)
        place = len(equal)
        if operator and place < len(self.codecs) and (operator == "=" or self.keeps_order(place)):
            asked = fitting(self.codecs[place], operator, operands)
            if asked is None:
                return nothing(ABOVE_SEPARATOR)
            operator, operands = asked
        return without_empty_texts(self._selection(equal, operator, tuple(operands)))

    def has_text(self, place: int, value: Any) -> bool:
        """Whether there can be a key with this value in this place: no number is beyond its width."""
        return place >= len(self.codecs) or has_text(self.codecs[place], value)

    def _selection(
        self, equal: Sequence[Any], operator: Operator | None, operands: tuple[Any, ...]
    ) -> Selection:
        lead = self.prefix(equal)
        if operator is None:
            return under(lead) if len(equal) < len(self.codecs) else Selection("=", (lead,))
        if len(equal) == len(self.codecs):
            raise UsageError(f"{self} has no component left that {operator!r} could be asked of")
        if operator == "=":
            return self._selection([*equal, *operands], None, ())
        place = len(equal)
        codec, stop = self.codecs[place], self._stops[place]
        if operator == "begins_with":
            return under(lead + self._beginning(codec, stop, operands[0]))
        if not self.keeps_order(place):
            raise Unanswerable(
                f"{title(codec)} in {self} stands as it is, so keys do not sort by it, and "
                f"{operator!r} is not one range of them: ask for what it equals, or begins with"
            )
        is_last = place == len(self.codecs) - 1 and not self.literals[-1]
        component = Component(lead, codec, stop, is_last, self.separator == SEPARATOR)
        return component.select(operator, operands)

    def _beginning(self, codec: Codec[Any], stop: str, prefix: Any) -> str:
        beginning = getattr(
            codec, "beginning", None
        )  # isinstance(codec, Beginning) takes microseconds
        if beginning is None:
            raise UsageError(
                f"begins_with can be asked of text and of bytes, not of {title(codec)}: use between"
            )
        text: str = beginning(prefix)
        if ends_as_begins(text, stop):
            raise Unanswerable(
                f"what begins with {prefix!r} is not one range of keys: it ends in the beginning of "
                f"{stop!r}, where the component may end already; ask for less of it"
            )
        return text

    def is_ambiguous_with(self, other: Template) -> str | None:
        """Why keys of the two could be the same, with a key that both write; None if none is.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["ORDER", Text()]).is_ambiguous_with(Template(["ORDER", Natural(99)]))
        "ORDER#{Text} and ORDER#{Natural} could both write the key 'ORDER#00'"
        """
        found = common_key(self, other)
        if found is None:
            return None
        key, is_exact = found
        if is_exact or (self.reads(key) and other.reads(key)):
            return f"{self} and {other} could both write the key {key!r}"
        return f"nothing in the form of {self} and {other} tells their keys apart"


def _check(parts: Sequence[Part], separator: str) -> None:
    if not parts:
        raise UsageError("a template has at least one part")
    if not isinstance(separator, str) or not separator.isprintable():
        raise UsageError(f"{separator!r} is no separator; give printable characters, or none")
    forbidden = _FORBIDDEN if separator == SEPARATOR else _FORBIDDEN_BY_HAND
    for part in parts:
        found = isinstance(part, str) and forbidden.search(part)
        if found:
            raise UsageError(f"the literal {part!r} of a template holds {found[0]!r}, leave it out")
    check_literals(parts, separator)


def _bound(parts: Sequence[Part], ends: Sequence[str]) -> tuple[list[Part], list[Codec[Any]]]:
    """The parts, and the codecs among them, as they are in their places."""
    found: list[Part] = []
    codecs: list[Codec[Any]] = []
    for part in parts:
        if not isinstance(part, str):
            place = len(codecs)
            part = bound(part, ends[place], is_last=place == len(ends) - 1)
            codecs.append(part)
        found.append(part)
    return found, codecs


def _forms(literals: Sequence[str]) -> list[str]:
    """For each number of leading values, the text with a %s for each of them."""
    forms, form = [], ""
    for literal in literals:
        form += literal.replace("%", "%%")
        forms.append(form)
        form += "%s"
    return forms


def _encoded(codec: Codec[Any], value: Any) -> str:
    return codec.encode(value)


def _end(text: str, start: int, width: int | None, stop: str) -> int:
    """Where a component ends; behind the text where it does not."""
    if width is not None:
        return start + width
    end = text.find(stop, start) if stop else -1
    return len(text) if end < 0 else end
