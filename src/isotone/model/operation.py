"""`@operation`: one implementation for sync stores, async stores, transactions and structures.

A store, a transaction and a structure are *hosts*. Their operations are generators without I/O (`steps`), marked with
`@operation`. What a call returns depends on the host, and type checkers know it:

    class Counter(Host[M]):
        @operation
        def increment(self, by: int = 1) -> Steps[int]:
            return (yield from self.calls.upsert(…)).value

    Counter(store).increment()                      # int
    await Counter(async_store).increment()          # int
    yield from Counter(calls).increment()           # int, inside another operation

`@iteration` marks operations that return results in batches; the caller uses `for` or `async for`.

mypy and pyright see descriptors, because generic methods keep their type variables through these. At run time both
decorators return plain functions, which pass the generator to `host.run`.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from typing_extensions import TypeVar as TypeVarWithDefault

from isotone.shown_signature import show_signature
from isotone.tables.steps import Batches, Steps

P = ParamSpec("P")
R = TypeVar("R")


class Waits:
    """The kind of host whose operations wait and return results, such as a `Store`."""


class Awaits:
    """The kind of host whose operations are awaited, such as an `AsyncStore`."""


class Composes:
    """The kind of host whose operations are steps of another operation: `yield from`."""


M_co = TypeVarWithDefault("M_co", covariant=True, default=Waits)

CheckArguments = Callable[[Any, tuple[Any, ...], Mapping[str, Any]], None]
"""Raises `UsageError` for arguments that an operation does not accept: (host, args, kwargs)."""


class Host(Generic[M_co]):
    """An object with operations; its `run` and `run_batches` determine what a call returns."""

    run: Callable[[Steps[Any]], Any]
    run_batches: Callable[[Batches[Any]], Any]


if TYPE_CHECKING:

    class operation(Generic[P, R]):  # noqa: N801 - a decorator
        """Mark a method that returns steps as an operation of its host."""

        def __init__(self, function: Callable[Concatenate[Any, P], Steps[R]]) -> None: ...
        def __call__(self, host: Any, *args: P.args, **kwargs: P.kwargs) -> Any: ...
        @overload
        def __get__(self, host: None, owner: type) -> Self: ...
        @overload
        def __get__(self, host: Host[Waits], owner: type) -> Callable[P, R]: ...
        @overload
        def __get__(
            self, host: Host[Awaits], owner: type
        ) -> Callable[P, Coroutine[Any, Any, R]]: ...
        @overload
        def __get__(self, host: Host[Composes], owner: type) -> Callable[P, Steps[R]]: ...
        def __get__(self, host: Any, owner: type) -> Any: ...

    class iteration(Generic[P, R]):  # noqa: N801 - a decorator
        """Mark a method that returns batches as an iteration of its host."""

        def __init__(self, function: Callable[Concatenate[Any, P], Batches[R]]) -> None: ...
        def __call__(self, host: Any, *args: P.args, **kwargs: P.kwargs) -> Any: ...
        @overload
        def __get__(self, host: None, owner: type) -> Self: ...
        @overload
        def __get__(self, host: Host[Waits], owner: type) -> Callable[P, Iterator[R]]: ...
        @overload
        def __get__(self, host: Host[Awaits], owner: type) -> Callable[P, AsyncIterator[R]]: ...
        @overload
        def __get__(self, host: Host[Composes], owner: type) -> Callable[P, Batches[R]]: ...
        def __get__(self, host: Any, owner: type) -> Any: ...

else:

    def operation(function, check: CheckArguments | None = None):
        """Mark a method that returns steps as an operation of its host."""
        # Two functions, because every call of a store would pay for a test of `check`. The coroutine's name appears in
        # Python's warning "… was never awaited".
        if check is None:

            def call(self, /, *args, **kwargs):
                result = self.run(function(self, *args, **kwargs))
                if result.__class__ is CoroutineType:
                    result.__qualname__ = f"{self.__class__.__name__}.{function.__name__}"
                return result

        else:

            def call(self, /, *args, **kwargs):
                check(self, args, kwargs)
                result = self.run(function(self, *args, **kwargs))
                if result.__class__ is CoroutineType:
                    result.__qualname__ = f"{self.__class__.__name__}.{function.__name__}"
                return result

        show_signature(functools.update_wrapper(call, function), function)
        return call

    def iteration(function, check: CheckArguments | None = None):
        """Mark a method that returns batches as an iteration of its host."""

        def call(self, /, *args, **kwargs):
            if check is not None:
                check(self, args, kwargs)
            return self.run_batches(function(self, *args, **kwargs))

        show_signature(functools.update_wrapper(call, function), function)
        return call
