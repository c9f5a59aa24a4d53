"""The protocol of codecs, the components of string keys: how they encode and decode, and which order they keep.

Every codec keeps this rule, for values `a` and `b` and any texts `x` and `y` after them:

    encode(a) < encode(b)                      exactly when   a < b
    encode(a) + "#" + x < encode(b) + "#" + y  when           a < b

compared by UTF-8 bytes, which for Python strings is `<` itself; reversed if the codec is descending.
So texts without a fixed width contain no character up to `#`, and `$` only before the symbol of an escaped
character. Two codecs are for existing keys and guarantee less: `RawText` before another part, and `Unpadded`
anywhere, decode unambiguously but do not sort. `Template.keeps_order` tells which components sort.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar, runtime_checkable

from isotone.errors import MalformedKey, UsageError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
V = TypeVar("V")

SEPARATOR: Final = "#"
# The character after the separator: it ends the range of all texts that continue with a separator.
ABOVE_SEPARATOR: Final = "$"
# Above every character with which a text could continue; stands for texts that never continue.
NEVER: Final = "\U0010ffff"


class Codec(Protocol[T]):
    """One kind of component. Codecs are immutable, hashable, and equal if they encode alike."""

    @property
    def ascending(self) -> bool:
        """Whether texts sort like their values; False if they sort in reverse."""
        ...

    @property
    def width(self) -> int | None:
        """The number of characters, if it is the same for all texts."""
        ...

    @property
    def open_ended(self) -> bool:
        """Whether texts may contain any separator, so that nothing can follow."""
        ...

    @property
    def sorts(self) -> bool:
        """Whether texts sort as their values do, in either direction."""
        ...

    @property
    def alphabet(self) -> str | None:
        """The characters of texts without a fixed width; None if there are too many to list."""
        ...

    @property
    def least_continuation(self) -> str:
        """The least character with which a text can continue where another one ends.

        A separator that sorts below it preserves the order and marks the end.
        """
        ...

    @property
    def form(self) -> str:
        """Describes for people what the texts depend on; codecs with equal forms write compatible texts."""
        ...

    def __hash__(self) -> int: ...

    def encode(self, value: T) -> str:
        """The text of a value.

        Raises `OutOfRange` for a value beyond what was declared, `UsageError` for a wrong type.
        """
        ...

    def decode(self, text: str) -> T:
        """The value of a text. Raises `MalformedKey` for a text that `encode` never returns."""
        ...

    def descending(self) -> Codec[T]:
        """The same component in reversed order. Reversed twice, it is the original."""
        ...

    def before(self, value: T) -> T | None:
        """The next lower value; None if there is none, or if values are not discrete."""
        ...

    def after(self, value: T) -> T | None:
        """The next higher value; None if there is none, or if values are not discrete."""
        ...

    def samples(self) -> tuple[str, ...]:
        """Texts that `encode` returns, including the extremes; all texts if there are few.

        Together they show what all texts have in common: the positions of punctuation, and whether there
        are letters.
        """
        ...


@runtime_checkable
class HasPrefixes(Protocol[T_contra]):
    """A codec whose values can begin with one another, so that `begins_with` applies."""

    def encode_prefix(self, prefix: T_contra) -> str:
        """The text with which exactly the texts of those values begin that begin with `prefix`."""
        ...


@runtime_checkable
class Rounding(Protocol[T]):
    """A codec that has texts for some values of an ordered type, such as a range or a precision."""

    def nearest(self, value: T) -> tuple[T | None, T | None]:
        """The greatest value with a text that is not above this one, and the least that is not below.

        Both are the value itself if it has a text. None means that there is no such value.
        """
        ...


@runtime_checkable
class Measured(Protocol[T_contra]):
    """A codec with a declared maximum, which a growing value approaches."""

    def share(self, value: T_contra) -> float:
        """The fraction of the maximum that a value has reached: 0.3 is 30 %."""
        ...


@dataclass(frozen=True, slots=True)
class Directed:
    """The base class of codecs: a direction, and defaults for texts of a fixed width."""

    ascending: bool = field(default=True, kw_only=True)

    sorts: ClassVar[bool] = True
    shaped_by: ClassVar[tuple[str, ...]] = ()
    """The attributes that determine the texts, besides the direction."""

    @property
    def open_ended(self) -> bool:
        """Whether texts may contain any separator; False for nearly all codecs."""
        return False

    @property
    def alphabet(self) -> str | None:
        """The characters of texts without a fixed width."""
        return None

    @property
    def least_continuation(self) -> str:
        """The least character with which a text can continue; texts of one width never do."""
        return NEVER

    @property
    def form(self) -> str:
        """What the texts depend on: `Natural width=5 descending`."""
        return form_of(self)

    def descending(self) -> Self:
        """The same component in reversed order. Reversed twice, it is the original."""
        return replace(self, ascending=not self.ascending)


def form_of(codec: Directed) -> str:
    """The name of a codec, and the attributes that determine its texts."""
    given = ((name, getattr(codec, name)) for name in codec.shaped_by)
    options = [f"{name}={value}" for name, value in given if value not in (None, False, "")]
    return " ".join([type(codec).__name__, *options, *([] if codec.ascending else ["descending"])])


# Errors


def wrong_type(value: Any, expected: str) -> UsageError:
    """The error for a value of a type that the codec does not take."""
    return UsageError(
        f"{value!r} is a {type(value).__name__}, and this component of a key holds {expected}"
    )


def malformed(text: str, expected: str) -> MalformedKey:
    """The error for a text that the codec never writes."""
    return MalformedKey(f"{text!r} is not {expected}")
