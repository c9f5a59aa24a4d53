"""What `help()` and editors show of a public method: results, and types that can be imported."""

from __future__ import annotations

import builtins
import collections.abc
import datetime
import decimal
import inspect
import pydoc
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Table, client, errors, field, model, structures
from isotone.client import request_types
from isotone.model import Calls
from isotone.structures.structure import Structure

CLASSES: list[type] = [
    isotone.Store,
    isotone.AsyncStore,
    Calls,
    isotone.Transaction,
    isotone.Client,
    client.StreamsClient,
    *(
        kind
        for name in structures.__all__
        if isinstance(kind := getattr(structures, name), type) and issubclass(kind, Structure)
    ),
]
PUBLIC = {
    *isotone.__all__,
    *model.__all__,
    *structures.__all__,
    *client.__all__,
    *(name for name in vars(errors) if not name.startswith("_")),
    *(name for name in vars(request_types) if not name.startswith("_")),
    *dir(builtins),
    *collections.abc.__all__,
    *typing.__all__,
    *dir(datetime),
    *dir(decimal),
    "PathLike",
    *"CEPRSTK",  # type variables
}


def methods() -> Iterator[Any]:
    for kind in CLASSES:
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_"):
                yield pytest.param(member, id=f"{kind.__name__}.{name}")


METHODS = list(methods())


def annotations(method: Callable[..., Any]) -> Iterator[str]:
    signature = inspect.signature(method)
    for each in (*signature.parameters.values(), signature):
        shown = getattr(each, "annotation", getattr(each, "return_annotation", None))
        if shown is not inspect.Signature.empty:
            assert isinstance(shown, str)
            yield shown


@pytest.mark.parametrize("method", METHODS)
def test_help_names_only_what_can_be_imported(method: Callable[..., Any]) -> None:
    for shown in annotations(method):
        assert repr(shown) == shown  # without quotes around it
        text = re.sub(r"'[^']*'", "", shown)  # the values of a Literal
        names = set(re.findall(r"[A-Za-z_]\w*", text))
        assert names <= PUBLIC, names - PUBLIC
        assert not re.search(r"\w\.\w", text), f"{shown} has the name of a module"


@pytest.mark.parametrize("method", METHODS)
def test_an_operation_shows_its_result(method: Callable[..., Any]) -> None:
    if method.__name__ in ("run", "run_batches"):
        return
    assert not re.search(r"\b(Steps|Batches|Unpack|M_co)\b", str(inspect.signature(method)))


def test_help_of_a_page() -> None:
    with isotone.connect(":memory:") as store:
        text = pydoc.render_doc(store.page, renderer=pydoc.plaintext)  # type: ignore[attr-defined] # of pydoc
    assert (
        "page(read: Read[R] | Merge[R], *, size: int = 100, cursor: str | None = None) -> Page[R]"
        in text
    )


def test_a_method_of_the_client_lists_its_parameters_those_that_it_needs_first() -> None:
    parameters = inspect.signature(isotone.Client.get_item).parameters
    assert list(parameters)[:3] == ["self", "TableName", "Key"]
    assert str(parameters["TableName"]) == "TableName: str"
    assert str(parameters["Key"]) == "Key: Mapping[str, AttributeValue]"
    assert str(parameters["ConsistentRead"]) == "ConsistentRead: bool = ..."
    assert parameters.keys() - {"self"} == request_types.GetItemInput.__annotations__.keys()


def test_progress_says_what_it_is_called_with() -> None:
    parameter = inspect.signature(isotone.Store.put_many).parameters["progress"]
    assert str(parameter) == "progress: Callable[[BatchProgress], None] | None = None"


def test_the_source_of_a_method_is_found() -> None:
    assert "def page(" in inspect.getsource(isotone.Store.page)
    assert "def put_item(" in inspect.getsource(isotone.Client.put_item)


def test_all_public_names_are_listed() -> None:
    homes = isotone._HOMES.keys()
    # `from isotone import *` leaves the built-in `open` alone.
    assert set(isotone.__all__) == (homes - {"open"}) | {"__version__"}


numbers = Table("numbers")


class Number(Entity, table=numbers):
    number: Attr[int] = field(max=999)
    primary = Key("NUMBER").sort(number)


def test_a_page_has_a_hundred_unless_a_size_is_given() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(numbers)
        store.put_many(Number(number=number) for number in range(230))
        every = Number.primary.where()
        first = store.page(every)
        assert [each.number for each in first] == list(range(100))
        assert first.cursor is not None
        assert len(store.page(every, cursor=first.cursor)) == 100
        assert [len(page) for page in store.pages(every)] == [100, 100, 30]
        assert len(store.page(every, size=7)) == 7


@pytest.mark.parametrize("function", [isotone.connect, isotone.aconnect, isotone.open])
def test_what_opens_a_store_lists_its_options(function: Callable[..., Any]) -> None:
    signature = inspect.signature(function)
    assert str(signature.parameters["durability"]).startswith(
        "durability: Literal['disk', 'process', 'none'] = "
    )
    assert not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
