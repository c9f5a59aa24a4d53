"""Arguments are looked at, as far as their types can be."""

from __future__ import annotations

from multiprocessing import Process
from typing import Any, Literal, TypedDict

import pytest

from isotone import Store, Table, errors
from isotone.structures.argument_checks import MethodParameters, validated
from isotone.structures.structure import S, Structure


class Weight(TypedDict):
    grams: int


class Lent(Structure[S]):
    """With types that a class of a program may have."""

    @validated
    def known(self, weight: Weight, name: str = None) -> str:  # type: ignore[assignment] # noqa: RUF013 - as many write it
        return f"{name}: {weight['grams']}"

    @validated
    def often(self, window: Literal["hour", "day"] = "day") -> str:
        return window

    @validated
    def unknown(self, unread: Process[bytes], name: str) -> str:  # type: ignore[type-arg] # to be read by nobody
        return name


def test_types_that_cannot_be_looked_at_are_in_nobodys_way(memory: Store) -> None:
    lent: Any = Lent(memory, Table("tallies"))
    assert lent.known({"grams": 3}, None) == lent.known({"grams": 3}, name=None) == "None: 3"
    with pytest.raises(errors.UsageError, match="weight takes Weight, not list"):
        lent.known([3])
    assert lent.unknown(None, "a") == "a"


def test_a_default_that_was_given_makes_no_other_text_right(memory: Store) -> None:
    lent: Any = Lent(memory, Table("tallies"))
    assert (lent.often("day"), lent.often("hour")) == ("day", "hour")
    with pytest.raises(errors.UsageError, match="window takes 'hour'"):
        lent.often("daily")


class Whole:
    """A whole number of another library's."""

    def __index__(self) -> int:
        return 3


def test_whole_numbers_of_other_libraries_are_numbers() -> None:
    def wait(self: Any, times: int, seconds: float = 0) -> None: ...

    MethodParameters(wait).check("wait", (Whole(),), {"seconds": Whole()})
    with pytest.raises(errors.UsageError, match="times takes int, not bool"):
        MethodParameters(wait).check("wait", (True,), {})
