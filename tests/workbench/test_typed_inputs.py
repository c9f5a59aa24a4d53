"""Inputs whose values must survive the form: what is shown of a value is read as that value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Literal, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter
from typing_extensions import TypedDict

from isotone.errors import UsageError
from isotone.workbench.typed_inputs import typed_input


@dataclass(slots=True)
class Slotted:
    """Has no `__dict__`."""

    sku: str
    count: int = 5


class Open(BaseModel):
    """Keeps members that it does not declare."""

    model_config = ConfigDict(extra="allow")
    sku: str


class Filled(BaseModel):
    """None is not the default of an optional member."""

    floor: int | None = 5
    street: str = "Main"


@dataclass
class FilledToo:
    """The same in a dataclass."""

    floor: int | None = 5


class Partly(TypedDict):
    """A member may be absent, and is not None then."""

    sku: str
    floor: NotRequired[int]


class Alike(Enum):
    """The value of one member is the name of another."""

    A = "B"
    B = 2


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Slotted, Slotted("a", 7)),
        (Open, Open.model_validate({"sku": "a", "color": "red"})),
        (Filled, Filled(floor=None)),
        (Filled, Filled(floor=3)),
        (FilledToo, FilledToo(None)),
        (Partly, {"sku": "a"}),
        (Partly, {"sku": "a", "floor": 2}),
        (Alike, Alike.A),
        (Alike, Alike.B),
        (Literal[1, "1"], 1),
        (Literal[1, "1"], "1"),
    ],
)
def test_a_value_that_is_shown_is_read_as_itself(annotation: Any, value: Any) -> None:
    node = typed_input(annotation)
    again = TypeAdapter(annotation).validate_python(node.read(node.shown(value)))
    assert again == value
    assert type(again) is type(value)


def test_a_duration_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError, match="less than a billion days"):
        typed_input(timedelta).read("99999999999d")
