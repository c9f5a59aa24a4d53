"""Templates: the parts of a string key, and the conditions that select keys by them.

A template is a sequence of literals and codecs, which `#` joins:

    Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])
    CUSTOMER#36ab#ORDER#99842

Keys of one template sort by the first component, then by the second, and so on, each in its direction.
Because no component but a last raw text holds a separator, a key is read back in one way only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isotone.codec.readable.interface import SEPARATOR, Beginning, Codec
from isotone.codec.readable.overlap import common_key
from isotone.codec.readable.selection import (
    Component,
    Operator,
    Selection,
    ceiling,
    check_operands,
    under,
    without_empty_texts,
)
from isotone.errors import MalformedKey, UsageError

Part = str | Codec[Any]

_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f$\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Template:
    """The form of a string key.

    Raises `UsageError` for no parts, for a literal with `$`, a control character or half a
    surrogate pair, and for a part after a `RawText`.

    >>> from isotone.codec.readable import Natural, Text
    >>> orders = Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])
    >>> orders.render(["36ab", 157])
    'CUSTOMER#36ab#ORDER#99842'
    >>> orders.parse("CUSTOMER#36ab#ORDER#99842")
    ('36ab', 157)
    """

    parts: tuple[Part, ...]
    codecs: tuple[Codec[Any], ...] = field(init=False, repr=False, compare=False)
    width: int | None = field(init=False, repr=False, compare=False)
    _pieces: tuple[Part, ...] = field(init=False, repr=False, compare=False)
    _forms: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, parts: Sequence[Part]) -> None:
        set_ = object.__setattr__
        set_(self, "parts", tuple(parts))
        _check(self.parts)
        set_(self, "codecs", tuple(part for part in self.parts if not isinstance(part, str)))
        set_(self, "width", _width(self.parts))
        set_(self, "_pieces", tuple(_pieces(self.parts)))
        set_(self, "_forms", tuple(_forms(self.parts)))

    def __str__(self) -> str:
        return SEPARATOR.join(
            part if isinstance(part, str) else f"{{{_title(part)}}}" for part in self.parts
        )

    def render(self, values: Sequence[Any]) -> str:
        """The key of one value for each codec. Raises what the codecs' `encode` does."""
        if len(values) != len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        texts = [codec.encode(value) for codec, value in zip(self.codecs, values, strict=True)]
        return self._forms[-1] % tuple(texts)

    def prefix(self, values: Sequence[Any] = ()) -> str:
        """What all keys with these leading values begin with: up to the next component.

        It ends in `#`, or is empty where the first part is a component without a value, or is the
        whole key where no value is missing.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["CUSTOMER", Text(), "ORDER", Natural(9)]).prefix(["36ab"])
        'CUSTOMER#36ab#ORDER#'
        """
        if len(values) > len(self.codecs):
            raise UsageError(f"{self} takes {len(self.codecs)} values, not {len(values)}")
        texts = [codec.encode(value) for codec, value in zip(self.codecs, values, strict=False)]
        return self._forms[len(texts)] % tuple(texts)

    def bounds(self, values: Sequence[Any] = ()) -> tuple[str, str | None]:
        """The least and the greatest text, both included, between which these keys alone lie.

        The greatest is None where there is no end: where the prefix is empty.
        """
        prefix = self.prefix(values)
        if len(values) == len(self.codecs):
            return prefix, prefix
        return prefix, ceiling(prefix) if prefix else None

    def parse(self, text: str) -> tuple[Any, ...]:
        """The values of a key. Raises `MalformedKey` for a key that the template never writes."""
        texts = text.split(SEPARATOR, len(self._pieces) - 1 if self._has_rest else -1)
        if len(texts) != len(self._pieces):
            raise MalformedKey(f"the key {text!r} is not of the form {self}")
        values = []
        for piece, found in zip(self._pieces, texts, strict=True):
            if not isinstance(piece, str):
                try:
                    values.append(piece.decode(found))
                except MalformedKey as error:
                    raise MalformedKey(f"the key {text!r} is not {self}: {error}") from None
            elif piece != found:
                raise MalformedKey(f"the key {text!r} is not of the form {self}")
        return tuple(values)

    @property
    def _has_rest(self) -> bool:
        return bool(self.codecs) and self.codecs[-1].takes_the_rest

    def select(
        self,
        equal: Sequence[Any] = (),
        operator: Operator | None = None,
        operands: Sequence[Any] = (),
    ) -> Selection:
        """The condition for the keys whose leading values are `equal`, and whose next satisfies
        the operator.

        Raises `UsageError` where there is no next one or the operator does not fit it, and what
        `encode` does.

        >>> from isotone.codec.readable import Day, Text
        >>> Template([Text(), Day()]).select(["CANCELLED"]).operands
        ('CANCELLED#',)
        """
        return without_empty_texts(self._selection(equal, operator, tuple(operands)))

    def _selection(
        self, equal: Sequence[Any], operator: Operator | None, operands: tuple[Any, ...]
    ) -> Selection:
        check_operands(operator, operands)
        lead = self.prefix(equal)
        if operator is None:
            return under(lead) if len(equal) < len(self.codecs) else Selection("=", (lead,))
        if len(equal) == len(self.codecs):
            raise UsageError(f"{self} has no component left that {operator!r} could be asked of")
        if operator == "=":
            return self._selection([*equal, *operands], None, ())
        codec = self.codecs[len(equal)]
        if operator == "begins_with":
            return under(lead + _beginning(codec, operands[0]))
        last = len(equal) == len(self.codecs) - 1 and not isinstance(self.parts[-1], str)
        return Component(lead, codec, last).select(operator, operands)

    def is_ambiguous_with(self, other: Template) -> str | None:
        """Why keys of the two could be the same, with a key that both write; None if none is.

        >>> from isotone.codec.readable import Natural, Text
        >>> Template(["ORDER", Text()]).is_ambiguous_with(Template(["ORDER", Natural(99)]))
        "ORDER#{Text} and ORDER#{Natural} could both write the key 'ORDER#00'"
        """
        key = common_key(self._pieces, other._pieces)
        return None if key is None else f"{self} and {other} could both write the key {key!r}"


def _check(parts: tuple[Part, ...]) -> None:
    if not parts:
        raise UsageError("a template has at least one part")
    for part in parts:
        found = isinstance(part, str) and _FORBIDDEN.search(part)
        if found:
            raise UsageError(f"the literal {part!r} of a template holds {found[0]!r}, leave it out")
    for part in parts[:-1]:
        if not isinstance(part, str) and part.takes_the_rest:
            raise UsageError(
                f"{_title(part)} takes the rest of a key, so nothing can follow it: declare Text"
            )


def _width(parts: tuple[Part, ...]) -> int | None:
    widths = [len(part) if isinstance(part, str) else part.width for part in parts]
    known = [width for width in widths if width is not None]
    return sum(known) + len(parts) - 1 if len(known) == len(parts) else None


def _pieces(parts: tuple[Part, ...]) -> list[Part]:
    """The parts, with literals taken apart at separators."""
    pieces: list[Part] = []
    for part in parts:
        pieces.extend(part.split(SEPARATOR) if isinstance(part, str) else [part])
    return pieces


def _forms(parts: tuple[Part, ...]) -> list[str]:
    """For each number of leading values, the text with a %s for each of them."""
    forms, form = [], ""
    for part in parts:
        if not isinstance(part, str):
            forms.append(form)
        form += (part.replace("%", "%%") if isinstance(part, str) else "%s") + SEPARATOR
    return [*forms, form[:-1]]


def _beginning(codec: Codec[Any], prefix: Any) -> str:
    if not isinstance(codec, Beginning):
        raise UsageError(
            f"begins_with can be asked of text and of bytes, not of {_title(codec)}: use between"
        )
    return codec.beginning(prefix)


def _title(codec: Codec[Any]) -> str:
    return type(codec).__name__ + ("" if codec.ascending else " descending")
