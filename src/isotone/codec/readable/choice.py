"""Enums, literals and flags inside a key, in the order of their declaration (`in_order`).

    Choice(("PLACED", "SHIPPED", "CANCELLED"))                 0_PLACED  1_SHIPPED  2_CANCELLED
    Choice(("PLACED", "SHIPPED", "CANCELLED")).descending()    9_PLACED  8_SHIPPED  7_CANCELLED
    Flag()                                                     0 is false, 1 is true

The ordinal sorts, and the name is for people to read: the string itself, the value of an enum of strings,
the member's name of any other enum. Values added at the end leave existing keys unchanged, as long as the
ordinals have as many digits as before; `digits` reserves room for more than ten values.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from isotone.codec.readable.digits import complement
from isotone.codec.readable.interface import Directed, form_of, malformed, wrong_type
from isotone.codec.readable.texts import Text
from isotone.errors import OutOfRange, UsageError

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Choice(Directed, Generic[C]):
    """One of the declared values: an enum's members, a Literal's strings.

    >>> Choice(("PLACED", "SHIPPED")).encode("SHIPPED")
    '1_SHIPPED'
    """

    values: tuple[C, ...]
    digits: int = 0
    _texts: dict[C, str] = field(init=False, repr=False, compare=False)
    _values: dict[str, C] = field(init=False, repr=False, compare=False)

    width: ClassVar[None] = None
    shaped_by: ClassVar[tuple[str, ...]] = ("digits",)

    def __post_init__(self) -> None:
        needed = len(str(max(0, len(self.values) - 1)))
        if not self.values or len(set(self.values)) < len(self.values):
            raise UsageError(
                f"a Choice needs at least one value, and no value twice: {self.values!r}"
            )
        if self.digits == 0:
            object.__setattr__(self, "digits", needed)
        if self.digits < needed:
            raise UsageError(f"{len(self.values)} values need {needed} digits, not {self.digits}")
        texts = {value: self._text(place, value) for place, value in enumerate(self.values)}
        object.__setattr__(self, "_texts", texts)
        object.__setattr__(self, "_values", {text: value for value, text in texts.items()})

    def _text(self, place: int, value: C) -> str:
        ordinal = str(place).zfill(self.digits)
        return (
            (ordinal if self.ascending else complement(ordinal)) + "_" + _NAME.encode(name(value))
        )

    def encode(self, value: C) -> str:
        try:
            return self._texts[value]
        except (KeyError, TypeError):
            declared = ", ".join(map(repr, self.values))
            raise OutOfRange(f"{value!r} is not one of the declared values: {declared}") from None

    def decode(self, text: str) -> C:
        try:
            return self._values[text]
        except KeyError:
            raise malformed(text, f"one of {', '.join(self._values)}") from None

    def before(self, value: C) -> C | None:
        place = self.values.index(value)
        return self.values[place - 1] if place else None

    def after(self, value: C) -> C | None:
        following = self.values[self.values.index(value) + 1 :]
        return following[0] if following else None

    @property
    def form(self) -> str:
        names = " ".join(_NAME.encode(name(value)) for value in self.values)
        return f"{form_of(self)}: {names} "

    @property
    def alphabet(self) -> str:
        return "".join(sorted(set("".join(self._values))))

    def samples(self) -> tuple[str, ...]:
        return tuple(self._values)


@dataclass(frozen=True, slots=True)
class Flag(Directed):
    """A bool; False comes before True.

    >>> Flag().encode(True), Flag().descending().encode(True)
    ('1', '0')
    """

    width: ClassVar[int] = 1

    def encode(self, value: bool) -> str:
        if not isinstance(value, bool):
            raise wrong_type(value, "bool")
        return "1" if value == self.ascending else "0"

    def decode(self, text: str) -> bool:
        if text not in ("0", "1"):
            raise malformed(text, "a flag, 0 or 1")
        return (text == "1") == self.ascending

    def before(self, value: bool) -> bool | None:
        return False if value else None

    def after(self, value: bool) -> bool | None:
        return None if value else True

    def samples(self) -> tuple[str, ...]:
        return "0", "1"


_NAME = Text()


def name(value: Any) -> str:
    """The name of a value inside a key.

    >>> name("SHIPPED")
    'SHIPPED'
    """
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return str(value)
