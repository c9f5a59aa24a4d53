"""Every error survives pickling, copying and another process: its class, its text, its attributes."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import botocore.exceptions
import pytest
from tests.programs import CONTEXT
from tests.test_layers import MODULES

import isotone
from isotone import Attr, Entity, Global, Key, Store, Table, errors, field
from isotone.client import exceptions as of_client

TEXT = "a {text} of 100 % ['x']"
THINGS = Table("things")


class Thing(Entity, table=THINGS):
    name: Attr[str] = field()
    number: Attr[int] = field(default=0, unique=True)
    primary = Key("THING", name).sort("THING")


def thing(name: str = "a", number: int = 1) -> Thing:
    return Thing(name=name, number=number)


# An argument for each parameter of a constructor, by its name.
ARGUMENTS: dict[str, Any] = {
    "message": TEXT,
    "report": TEXT,
    "reason": TEXT,
    "text": TEXT,
    "sentence": "a sentence",
    "name": "table_exists",
    "table": "things",
    "entity": "Thing",
    "field": "number",
    "fields": {"number": "no"},
    "file": "a.csv",
    "code": "S3NoSuchKey",
    "state": "53100",
    "tree": "t17",
    "number": 7,
    "sent": False,
    "value": 12,
    "owner": Thing.primary.at(name="b"),
    "current": thing(),
    "stats": {"units": 0.5},
    "until": datetime(2026, 1, 2, tzinfo=UTC),
    "key": {"PK": "THING#a"},
    "found": {"S": "x"},
    "declared": "a number",
    "errors": [{"loc": ("number",), "msg": "no"}],
    "differences": ["index 'a' does not exist", "key"],
    "changes": ["PK was A", "SK was B"],
    "remaining": [thing(), Thing.primary.at(name="c")],
    "forecast": {"units": 0.5},
    "failures": [errors.Failure(1, Thing.primary.at(name="b"), errors.NotFound(TEXT, thing()))],
    "last_response": {"Table": {"TableStatus": "CREATING"}},
    "operation_name": "PutItem",
    "error_response": {"Error": {"Code": "X", "Message": TEXT}, "Item": {}},
    "args": (TEXT,),
    "kwargs": {},
    "members": {"Item": {"a": {"S": "x"}}, "CancellationReasons": [{"Code": "None"}]},
    "details": {},
}


def kinds() -> list[type[BaseException]]:
    """Every class of exceptions and warnings of ours that has a public name."""
    for module in MODULES:
        if module != "isotone.__main__":
            importlib.import_module(module)
    found: set[type[BaseException]] = set()
    left: list[type[BaseException]] = [BaseException]
    while left:
        new = set(left.pop().__subclasses__()) - found
        found |= new
        left += new
    ours = (kind for kind in found if kind.__module__ in MODULES)
    public = (kind for kind in ours if not kind.__name__.startswith("_"))
    importable = (
        kind
        for kind in public
        if vars(importlib.import_module(kind.__module__)).get(kind.__name__) is kind
    )
    return sorted(importable, key=lambda kind: (kind.__module__, kind.__name__))


KINDS = kinds()


def sample(kind: type[BaseException]) -> BaseException:
    """An error with an argument for each parameter that its constructor has."""
    given: list[Any] = []
    named: dict[str, Any] = {}
    _, *parameters = inspect.signature(kind.__init__).parameters.values()
    for parameter in parameters:
        argument = ARGUMENTS[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            given += argument
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= argument
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = argument
        else:
            given.append(argument)
    error = kind(*given, **named)
    error.add_note("in the test")
    return error


def shown(value: Any) -> Any:
    """A value that can be compared: errors and entities by what they show."""
    if isinstance(value, BaseException):
        return type(value).__name__, str(value), repr(value), shown(value.args), shown(vars(value))
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [shown(each) for each in value]
    return value


def is_the_same(found: BaseException, error: BaseException) -> bool:
    # With botocore, a class of the client may become one of botocore's.
    assert isinstance(found, type(error))
    assert shown(found) == shown(error)
    return found is not error


def fail_with(index: int) -> None:
    raise sample(KINDS[index])


def test_the_whole_tree_is_tried():
    assert {errors.TableDiffers, errors.BadRow, errors.InvalidEntity, of_client.WaiterError} <= set(
        KINDS
    )
    declared = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert declared <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_an_error_survives_pickling_and_copying(kind):
    error = sample(kind)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert is_the_same(pickle.loads(pickle.dumps(error, protocol)), error)
    assert is_the_same(copy.copy(error), error)
    assert is_the_same(copy.deepcopy(error), error)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(error))))
    assert is_the_same(again, error)


def test_an_error_survives_another_process():
    with ProcessPoolExecutor(1, mp_context=CONTEXT) as pool:
        failed = [pool.submit(fail_with, index) for index in range(len(KINDS))]
        for kind, future in zip(KINDS, failed, strict=True):
            error = future.exception(60)
            assert error is not None
            assert is_the_same(error, sample(kind))


class OfAProgram(errors.TableDiffers):
    """A subclass with a constructor of its own."""

    def __init__(self, first: int, *, second: int) -> None:
        super().__init__([first, second])
        self.second = second


class OfAnotherProgram(of_client.WaiterError):
    def __init__(self) -> None:
        super().__init__(name="n", reason="r", last_response={})


@pytest.mark.parametrize("make", [partial(OfAProgram, 1, second=2), OfAnotherProgram])
def test_so_does_an_error_that_a_program_derives(make: Callable[[], BaseException]) -> None:
    assert is_the_same(pickle.loads(pickle.dumps(make())), make())


def raised(call: Callable[[], object]) -> BaseException:
    with pytest.raises(isotone.errors.IsotoneError) as caught:
        call()
    error: BaseException = caught.value.with_traceback(None)
    return error


def refused_transaction(store: Store) -> None:
    with store.transaction() as tx:
        tx.create(thing())
        tx.create(thing("b", 2))


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.create_tables(Table("things", indexes={"GSI": Global("g", "h")})),
        lambda store: store.create(thing()),
        lambda store: store.put(thing("b")),
        lambda store: store.update(Thing.primary.at(name="no"), Thing.number.set(3)),
        refused_transaction,
        lambda store: Thing(name=3, number="x"),
        lambda store: store.page(Thing.find(Thing.name == "a"), size=2, cursor="no cursor"),
    ],
)
def test_what_a_store_raises(call):
    with isotone.connect(":memory:") as store:
        store.create_tables(THINGS)
        store.put(thing())
        error = raised(lambda: call(store))
        assert is_the_same(pickle.loads(pickle.dumps(error)), error)
        assert is_the_same(copy.deepcopy(error), error)


@pytest.mark.parametrize(
    ("call", "theirs"),
    [
        (
            lambda client: client.get_item(TableName="t", Key=3),
            botocore.exceptions.ParamValidationError,
        ),
        (
            lambda client: client.get_item(TableName="no_such_table", Key={}),
            botocore.exceptions.ClientError,
        ),
        (
            lambda client: client.get_waiter("table_exists").wait(
                TableName="no_such_table", WaiterConfig={"MaxAttempts": 1}
            ),
            botocore.exceptions.WaiterError,
        ),
        (
            lambda client: list(
                client.get_paginator("scan").paginate(
                    TableName="t", PaginationConfig={"StartingToken": "!"}
                )
            ),
            botocore.exceptions.PaginationError,
        ),
    ],
)
def test_what_a_client_raises_stays_botocores(call, theirs):
    with isotone.open() as database:
        error = raised(lambda: call(database.client()))
    assert isinstance(error, theirs)
    error.add_note("in the test")
    found = pickle.loads(pickle.dumps(error))
    assert is_the_same(found, error)
    assert isinstance(found, theirs)
    assert is_the_same(copy.copy(error), error)
