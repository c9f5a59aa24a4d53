"""Templates: the form of a string key; splits a key into its parts (`MalformedKey`); conditions that select by parts.

A template is a sequence of literals and codecs, joined by a separator, which is `#` by default:

    Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])     CUSTOMER#36ab#ORDER#99842
    Template(["user", RawText(), "post", Natural(999)], separator=":")        user:ann:post:007
    Template(["v", Natural(99), "_", RawText()], separator="")                v01_draft

Keys of one template sort by the first component, then by the second, and so on, each in its direction.

A component ends after its width, at the end of the key, or where its *stop* begins: the separator, or the next literal
in a template without one. So a text must not contain its stop, not even in part (`a:` before `::` would end after `a`).
Then a key decodes in one way only. If a text can continue with a character below the first one of its stop, keys do not
sort by this component: it can be selected by equality and by prefix, but not by range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from isotone.codec.readable.interface import ABOVE_SEPARATOR, SEPARATOR, Codec
from isotone.codec.readable.overlap import common_key
from isotone.codec.readable.selection import (
    AddressedComponent,
    Operator,
    SortKeySelection,
    beyond,
    check_operands,
    fitting,
    has_text,
    nothing,
    under,
    without_empty_texts,
)
from isotone.codec.readable.texts import RawText
from isotone.errors import MalformedKey, Unanswerable, UsageError

Part = str | Codec[Any]

_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f$\ud800-\udfff]")
_FORBIDDEN_BY_HAND: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Template:
    """The form of a string key.

    Raises `UsageError` for no parts, for a literal with a control character or half a surrogate pair, and
    for a component whose end could not be found. If the separator is `#`, it also raises for a literal
    with `$`, which closes ranges.

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
    _encoders: tuple[Callable[[Any], str], ...] = field(init=False, repr=False, compare=False)

    def __init__(self, parts: Sequence[Part], separator: str = SEPARATOR) -> None:
        _check(parts, separator)
        literals = _literals_between(parts, separator)
        stops = _stops(literals, separator)
        bound_parts = _bound(parts, stops)
        codecs = tuple(part for part in bound_parts if not isinstance(part, str))
        set_ = object.__setattr__
        set_(self, "separator", separator)
        set_(self, "parts", tuple(bound_parts))
        set_(self, "codecs", codecs)
        set_(self, "literals", tuple(literals))
        set_(self, "pieces", _pieces(bound_parts, separator))
        set_(self, "_stops", tuple(stops))
        set_(self, "_forms", tuple(_forms(literals)))
        set_(self, "_encoders", tuple(codec.encode for codec in codecs))

    def __str__(self) -> str:
        return self.separator.join(
            part if isinstance(part, str) else f"{{{_title(part)}}}" for part in self.parts
        )

    def form(self, names: Sequence[str]) -> str:
        """Describes what the keys depend on, given a name for each component.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["CUSTOMER", Text(), "ORDER", Natural(99)]).form(["customer", "number"])
        'CUSTOMER#{customer: Text}#ORDER#{number: Natural width=2}'
        """
        named = iter(names)
        return self.separator.join(
            part if isinstance(part, str) else f"{{{next(named)}: {part.form}}}"
            for part in self.parts
        )

    @property
    def width(self) -> int | None:
        """The number of characters of a key, if it is the same for all keys."""
        widths = [codec.width for codec in self.codecs]
        known = [width for width in widths if width is not None]
        return sum(known) + sum(map(len, self.literals)) if len(known) == len(widths) else None

    def render(self, values: Sequence[Any]) -> str:
        """The key that has these values, one for each codec. Raises the errors of the codecs' `encode`."""
        if len(values) != len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        return self._forms[-1] % tuple(
            [encode(value) for encode, value in zip(self._encoders, values, strict=True)]
        )

    def prefix(self, values: Sequence[Any] = ()) -> str:
        """The common beginning of all keys with these leading values, up to the next component.

        It ends in the separator. It is empty if the first part is a component without a value, and the whole
        key if no value is missing.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["CUSTOMER", Text(), "ORDER", Natural(9)]).prefix(["36ab"])
        'CUSTOMER#36ab#ORDER#'
        """
        if len(values) > len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        return self._forms[len(values)] % tuple(
            [encode(value) for encode, value in zip(self._encoders, values, strict=False)]
        )

    def bounds(self, values: Sequence[Any] = ()) -> tuple[str, str | None]:
        """The range that contains exactly the keys with these leading values, both ends included.

        The end is None if the prefix is empty.
        """
        prefix = self.prefix(values)
        if len(values) == len(self.codecs):
            return prefix, prefix
        return prefix, beyond(prefix) if prefix else None

    def parse(self, text: str) -> tuple[Any, ...]:
        """The values of a key. Raises `MalformedKey` for a key that `render` never returns."""
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

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each component of a key begins and ends. Raises `MalformedKey` as `parse` does.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["CUSTOMER", Text(), "ORDER", Natural(99)]).spans("CUSTOMER#36ab#ORDER#07")
        [(9, 13), (20, 22)]
        """
        self.parse(text)
        spans, at = [], 0
        for codec, literal, stop in zip(self.codecs, self.literals, self._stops, strict=False):
            start = at + len(literal)
            at = _end(text, start, codec.width, stop)
            spans.append((start, at))
        return spans

    def reads(self, text: str) -> bool:
        """Whether a key is of this form."""
        try:
            self.parse(text)
        except MalformedKey:
            return False
        return True

    def keeps_order(self, place: int) -> bool:
        """Whether keys sort by the component at a position, so that it can be selected by range.

        >>> from isotone.codec.readable import Day, RawText
        >>> [Template(["USER", RawText(), Day()]).keeps_order(place) for place in (0, 1)]
        [False, True]
        """
        return _keeps_order(self.codecs[place], self._stops[place])

    def select(
        self,
        equal: Sequence[Any] = (),
        operator: Operator | None = None,
        operands: Sequence[Any] = (),
    ) -> SortKeySelection:
        """The condition for keys whose leading values are `equal` and whose next one satisfies the operator.

        Values outside the declared range, or finer than the scale, compare like any others. Raises
        `Unanswerable` for a range of a component by which keys do not sort, `UsageError` if there is no
        next component or the operator does not apply to it, and the errors of `encode`.

        >>> from isotone.codec.readable import Day, Text
        >>> Template([Text(), Day()]).select(["CANCELLED"]).operands
        ('CANCELLED#',)
        """
        check_operands(operator, tuple(operands))
        if not all(self.has_text(place, value) for place, value in enumerate(equal)):
            return nothing(ABOVE_SEPARATOR)
        place = len(equal)
        if operator and place < len(self.codecs) and (operator == "=" or self.keeps_order(place)):
            comparison = fitting(self.codecs[place], operator, operands)
            if comparison is None:
                return nothing(ABOVE_SEPARATOR)
            operator, operands = comparison
        return without_empty_texts(self._selection(equal, operator, tuple(operands)))

    def has_text(self, place: int, value: Any) -> bool:
        """Whether a key can contain this value at this position; a number beyond the width cannot be in one."""
        return place >= len(self.codecs) or has_text(self.codecs[place], value)

    def _selection(
        self, equal: Sequence[Any], operator: Operator | None, operands: tuple[Any, ...]
    ) -> SortKeySelection:
        lead = self.prefix(equal)
        if operator is None:
            return under(lead) if len(equal) < len(self.codecs) else SortKeySelection("=", (lead,))
        if len(equal) == len(self.codecs):
            raise UsageError(f"{self} has no component left to which {operator!r} could apply")
        if operator == "=":
            return self._selection([*equal, *operands], None, ())
        place = len(equal)
        codec, stop = self.codecs[place], self._stops[place]
        if operator == "begins_with":
            return under(lead + self._beginning(codec, stop, operands[0]))
        if not self.keeps_order(place):
            raise Unanswerable(
                f"keys of {self} do not sort by {_title(codec)}, so {operator!r} is not one range of "
                "them: use = or begins_with"
            )
        is_last = place == len(self.codecs) - 1 and not self.literals[-1]
        component = AddressedComponent(lead, codec, stop, is_last, self.separator == SEPARATOR)
        return component.select(operator, operands)

    def _beginning(self, codec: Codec[Any], stop: str, prefix: Any) -> str:
        encode = getattr(codec, "encode_prefix", None)  # faster than isinstance(codec, HasPrefixes)
        if encode is None:
            raise UsageError(
                f"begins_with applies to text and bytes, not to {_title(codec)}: use between"
            )
        text: str = encode(prefix)
        if any(text.endswith(stop[:cut]) for cut in range(1, len(stop))):
            raise Unanswerable(
                f"what begins with {prefix!r} is not one range of keys: it ends in the beginning of "
                f"{stop!r}, where the component may end already; use a shorter prefix"
            )
        return text

    def is_ambiguous_with(self, other: Template) -> str | None:
        """Why a key could belong to both templates, with an example; None if no key could.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["ORDER", Text()]).is_ambiguous_with(Template(["ORDER", Natural(99)]))
        "ORDER#{Text} and ORDER#{Natural} could both write the key 'ORDER#00'"
        """
        shared = common_key(self, other)
        if shared is None:
            return None
        key, is_exact = shared
        if is_exact or (self.reads(key) and other.reads(key)):
            return f"{self} and {other} could both write the key {key!r}"
        return f"the forms of {self} and {other} do not distinguish their keys"


def _check(parts: Sequence[Part], separator: str) -> None:
    if not parts:
        raise UsageError("a template must have at least one part")
    if not isinstance(separator, str) or not separator.isprintable():
        raise UsageError(f"{separator!r} is not a separator: use printable characters, or none")
    forbidden = _FORBIDDEN if separator == SEPARATOR else _FORBIDDEN_BY_HAND
    for part in parts:
        match = isinstance(part, str) and forbidden.search(part)
        if match:
            raise UsageError(f"the literal {part!r} contains {match[0]!r}; leave it out")
    if len(separator) > 1:
        _check_literals(parts[:-1], separator)


def _check_literals(parts: Sequence[Part], separator: str) -> None:
    """Refuse a literal that ends with the beginning of the separator after it."""
    for part in parts:
        if isinstance(part, str):
            text = part.split(separator)[-1]
            if (text + separator).find(separator) != len(text):
                raise UsageError(
                    f"the literal {part!r} ends with the beginning of the separator {separator!r}, so it could not be "
                    "read back: change the literal"
                )


def _literals_between(parts: Sequence[Part], separator: str) -> list[str]:
    """The texts before, between and after the components, including separators."""
    literals, text = [], ""
    for place, part in enumerate(parts):
        text += separator if place else ""
        if isinstance(part, str):
            text += part
        else:
            literals.append(text)
            text = ""
    return [*literals, text]


def _stops(literals: Sequence[str], separator: str) -> list[str]:
    """The stop of each component; empty directly before another component and at the end."""
    return [(separator or literal) if literal else "" for literal in literals[1:]]


def _bound(parts: Sequence[Part], stops: Sequence[str]) -> list[Part]:
    """The parts, with each codec adapted to its position."""
    bound: list[Part] = []
    place = 0
    for part in parts:
        if not isinstance(part, str):
            part = _bound_codec(part, stops[place], is_last=place == len(stops) - 1)
            place += 1
        bound.append(part)
    return bound


def _bound_codec(codec: Codec[Any], stop: str, *, is_last: bool) -> Codec[Any]:
    if codec.width is not None or (is_last and not stop):
        return codec
    if isinstance(codec, RawText) and codec.ascending and stop:
        return replace(codec, until=stop)
    if not stop:
        raise UsageError(
            f"nothing marks where {_title(codec)} ends and the next component begins: put a literal "
            "between them, or declare a separator"
        )
    if codec.alphabet is None:
        can_contain_stop = stop[0] >= codec.least_continuation
    else:
        can_contain_stop = set(stop) <= set(codec.alphabet)
    if can_contain_stop:
        raise UsageError(
            f"{_title(codec)} can contain {stop!r}, which follows it, so nothing marks where it "
            f"ends: declare another separator (such as {SEPARATOR!r}), or another form of the value"
        )
    return codec


def _pieces(parts: Sequence[Part], separator: str) -> tuple[Part, ...]:
    """The parts, with literals split at separators."""
    pieces: list[Part] = []
    for part in parts:
        if isinstance(part, str) and separator and separator in part:
            pieces += part.split(separator)
        else:
            pieces.append(part)
    return tuple(pieces)


def _keeps_order(codec: Codec[Any], stop: str) -> bool:
    return codec.sorts and (
        not stop or codec.width is not None or stop[0] < codec.least_continuation
    )


def _title(codec: Codec[Any]) -> str:
    return type(codec).__name__ + ("" if codec.ascending else " descending")


def _forms(literals: Sequence[str]) -> list[str]:
    """For each number of leading values, a format with one %s per value."""
    forms, form = [], ""
    for literal in literals:
        form += literal.replace("%", "%%")
        forms.append(form)
        form += "%s"
    return forms


def _end(text: str, start: int, width: int | None, stop: str) -> int:
    """The end of a component; beyond the text's end if its stop is missing."""
    if width is not None:
        return start + width
    end = text.find(stop, start) if stop else -1
    return len(text) if end < 0 else end
