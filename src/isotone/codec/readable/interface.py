"""What a component of a string key can do: the seam between templates and the kinds of values.

The rule that every codec keeps, for values `a` and `b` and for whatever `x` and `y` follow them:

    encode(a) < encode(b)                      exactly when   a < b
    encode(a) + "#" + x < encode(b) + "#" + y  when           a < b

by UTF-8 bytes, which for Python strings is `<` itself; the other way round where it is descending.
So no text of a variable width holds a character up to `#`, and a `$` stands only before the symbol of
an escaped character. What was written by hand keeps less: `RawText` before another part, and `Unpadded`
anywhere, are read back in one way only, but have no order; a template knows where that is so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Protocol, Self, TypeVar, runtime_checkable

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

SEPARATOR: Final = "#"
# The character above the separator: it closes the range of all that goes on after a separator.
ABOVE_SEPARATOR: Final = "$"
# Above every character that a text could go on with: no text goes on where another one ends.
NEVER: Final = "\U0010ffff"


class Codec(Protocol[T]):
    """One kind of component; immutable and hashable, and equal to whatever writes the same."""

    @property
    def ascending(self) -> bool:
        """Whether texts sort as their values do, or the other way round."""
        ...

    @property
    def width(self) -> int | None:
        """The number of characters, where every text has as many."""
        ...

    @property
    def takes_the_rest(self) -> bool:
        """Whether texts may hold any separator, so that nothing can follow."""
        ...

    @property
    def sorts(self) -> bool:
        """Whether texts sort as their values do at all."""
        ...

    @property
    def alphabet(self) -> str | None:
        """The characters of texts without a fixed width; None where there are more than can be named."""
        ...

    @property
    def goes_on(self) -> str:
        """The least character with which a text can go on where another one ends.

        Order and ends are safe before whatever sorts below it.
        """
        ...

    def __hash__(self) -> int: ...

    def encode(self, value: T) -> str:
        """The text of a value.

        Raises `OutOfRange` for a value beyond what was declared, `UsageError` for a wrong type.
        """
        ...

    def decode(self, text: str) -> T:
        """The value of a text. Raises `MalformedKey` for a text that `encode` never writes."""
        ...

    def descending(self) -> Codec[T]:
        """The same component in reversed order; reversed twice it is itself."""
        ...

    def before(self, value: T) -> T | None:
        """The greatest value below; None where there is none, or where values are not discrete."""
        ...

    def after(self, value: T) -> T | None:
        """The least value above; None where there is none, or where values are not discrete."""
        ...

    def specimens(self) -> tuple[str, ...]:
        """Texts that `encode` writes, among them the extremes; all of them where they are few.

        Together they show what all have in common: punctuation, its places, and whether there are
        letters.
        """
        ...


@runtime_checkable
class Beginning(Protocol[T_contra]):
    """A codec whose values begin with one another, so that `begins_with` means something."""

    def beginning(self, prefix: T_contra) -> str:
        """What the texts of exactly those values begin with that begin with `prefix`."""
        ...


@runtime_checkable
class Enclosing(Protocol[T]):
    """A codec of values with an order, of which it has texts for some."""

    def around(self, value: T) -> tuple[T | None, T | None]:
        """The greatest value with a text that is not above, and the least that is not below.

        Both are the value itself where it has a text; None is where there is no such value.
        """
        ...


@runtime_checkable
class Measured(Protocol[T_contra]):
    """A codec with a declared maximum, which a growing value approaches."""

    def share(self, value: T_contra) -> float:
        """How much of the maximum a value has used up: 0.3 is 30 %."""
        ...


@dataclass(frozen=True, slots=True)
class Directed:
    """The direction of a codec; all kinds are frozen dataclasses on top of it."""

    ascending: bool = field(default=True, kw_only=True)

    sorts: ClassVar[bool] = True

    @property
    def takes_the_rest(self) -> bool:
        """Whether texts may hold any separator: of nearly none."""
        return False

    @property
    def alphabet(self) -> str | None:
        """The characters of texts without a fixed width."""
        return None

    @property
    def goes_on(self) -> str:
        """The least character with which a text can go on: texts of one width never do."""
        return NEVER

    def descending(self) -> Self:
        """The same component in reversed order; reversed twice it is itself."""
        return replace(self, ascending=not self.ascending)
