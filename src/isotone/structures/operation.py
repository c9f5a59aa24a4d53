"""One implementation of each structure, for stores that wait and for stores that are awaited.

A structure has its operations as generators of requests (`isotone.model.steps`), marked by `@operation`.
Over a `Store` such a method gives its result, over an `AsyncStore` something to await, and type checkers
know which from the store that it was made with:

    class Counter(Structure[S]):
        @operation
        def increment(self, by: int = 1) -> Steps[int]:
            return (yield from self.calls.upsert(…)).value

    Counter(store).increment()              # int
    await Counter(async_store).increment()  # int

An operation runs; a generator composes. Operations that are made of others call plain generators:
`yield from self._add(…)`. `@iteration` is for what is read bit by bit: the method yields steps, is sent
what they read, and its caller sees one result after the other, by `for` or by `async for`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, cast, overload

from typing_extensions import TypeVar

from isotone.errors import UsageError
from isotone.model import AsyncStore, Entity, Steps, Store, Table
from isotone.structures.arguments import Parameters, checked

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Entity)
S = TypeVar("S", bound=Store | AsyncStore, default=Store)
"""The kind of store that a structure is over: `Store` where nothing is said."""

Batches = Generator[Steps[list[R]], list[R], None]
"""What an iteration is: it yields steps that read some results, and is sent these."""

_BINDING: Final = threading.Lock()


class operation(Generic[P, R]):  # noqa: N801 - a decorator
    """A method whose steps are run, or awaited, by the store of its structure."""

    def __init__(self, function: Callable[Concatenate[Any, P], Steps[R]]) -> None:
        self._function = function
        self._parameters = Parameters(function)
        functools.update_wrapper(cast("Any", self), function)

    def __call__(self, structure: Structure[Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """The same as the method of the structure: `SortedSet.zadd(trending, …)`."""
        bound: Any = self.__get__(structure, type(structure))
        return bound(*args, **kwargs)

    @overload
    def __get__(self, structure: None, owner: type) -> Self: ...
    @overload
    def __get__(self, structure: Structure[Store], owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(
        self, structure: Structure[AsyncStore], owner: type
    ) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, structure: Structure[Any] | None, owner: type) -> Any:
        if structure is None:
            return self
        bind = _awaited_call if isinstance(structure.store, AsyncStore) else _call
        name = f"{owner.__name__}.{self._function.__name__}"
        bound = bind(structure, self._function, self._parameters, name)
        return functools.update_wrapper(bound, self._function)


class iteration(Generic[P, R]):  # noqa: N801 - a decorator
    """A method whose steps are run one by one, as the caller asks for more."""

    def __init__(self, function: Callable[Concatenate[Any, P], Batches[R]]) -> None:
        self._function = function
        self._parameters = Parameters(function)
        functools.update_wrapper(cast("Any", self), function)

    def __call__(self, structure: Structure[Any], *args: P.args, **kwargs: P.kwargs) -> Any:
        """The same as the method of the structure."""
        bound: Any = self.__get__(structure, type(structure))
        return bound(*args, **kwargs)

    @overload
    def __get__(self, structure: None, owner: type) -> Self: ...
    @overload
    def __get__(self, structure: Structure[Store], owner: type) -> Callable[P, Iterator[R]]: ...
    @overload
    def __get__(
        self, structure: Structure[AsyncStore], owner: type
    ) -> Callable[P, AsyncIterator[R]]: ...
    def __get__(self, structure: Structure[Any] | None, owner: type) -> Any:
        if structure is None:
            return self
        function, parameters, store = self._function, self._parameters, structure.store
        call = f"{owner.__name__}.{function.__name__}"
        go_through: Any = _awaited if isinstance(store, AsyncStore) else _waited

        @functools.wraps(function)
        def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
            parameters.check(call, args, kwargs)
            return go_through(store, function(structure, *args, **kwargs))

        return perform


class Structure(Generic[S]):
    """What every structure has: a store, its calls as steps, and the table in which it lives."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign] # same signature

    def __init__(self, store: S, table: Table) -> None:
        if not isinstance(store, Store | AsyncStore):
            raise UsageError(
                f"a {type(self).__name__} is made with a store, not with {store!r}: "
                f"{type(self).__name__}(isotone.connect(…), …)"
            )
        if not isinstance(table, Table):
            raise UsageError(
                f"table={table!r} is no table; write table={type(self).__name__}.layout(…), or one of yours"
            )
        self.store: S = store
        self.calls = store.calls
        self.table = table

    def __repr__(self) -> str:
        names = map(vars(self).get, ("name", "relation", "namespace", "scope"))
        called = [repr(each) for each in names if each is not None]
        return f"{type(self).__name__}({', '.join([*called, f'table={self.table.name!r}'])})"

    def now(self) -> float:
        """Seconds since the epoch, by the store's clock."""
        return self.calls.clock.now()

    def after(self, seconds: float) -> datetime:
        """The time in `seconds` seconds from now, by the store's clock."""
        return datetime.fromtimestamp(self.now(), UTC) + timedelta(seconds=seconds)

    def kept(self, kind: type[E]) -> type[E]:
        """The entity class of a kind in this structure's table; see `bind_entity`."""
        return bind_entity(self.table, kind)

    @operation
    def create_table(self) -> Steps[None]:
        """Make the structure's table where it is missing."""
        yield from self.calls.create_tables(self.table)


def bind_entity(table: Table, kind: type[E]) -> type[E]:
    """The class of a kind of entity in a table: one for each table, whichever thread asks first.

    A structure declares its entities without a table, so that it can live in any. Its table's keys come
    with a subclass, which is made here.
    """
    with _BINDING:
        known = table.entities.get(kind.__name__)
        if known is not None and issubclass(known.entity, kind):
            return known.entity
        return cast("type[E]", type(kind.__name__, (kind,), {}, table=table))


def _call(
    structure: Structure[Store], function: Callable[..., Steps[R]], expected: Parameters, name: str
) -> Callable[..., R]:
    def perform(*args: Any, **kwargs: Any) -> R:
        expected.check(name, args, kwargs)
        return structure.store.run(function(structure, *args, **kwargs))

    return perform


def _awaited_call(
    structure: Structure[AsyncStore],
    function: Callable[..., Steps[R]],
    expected: Parameters,
    name: str,
) -> Callable[..., Coroutine[Any, Any, R]]:
    async def perform(*args: Any, **kwargs: Any) -> R:
        expected.check(name, args, kwargs)
        return await structure.store.run(function(structure, *args, **kwargs))

    return perform


def _waited(store: Store, batches: Batches[R]) -> Iterator[R]:
    try:
        steps = next(batches)
        while True:
            found = store.run(steps)
            yield from found
            steps = batches.send(found)
    except StopIteration:
        return


async def _awaited(store: AsyncStore, batches: Batches[R]) -> AsyncIterator[R]:
    try:
        steps = next(batches)
        while True:
            found = await store.run(steps)
            for each in found:
                yield each
            steps = batches.send(found)
    except StopIteration:
        return
