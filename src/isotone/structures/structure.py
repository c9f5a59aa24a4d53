"""The base class of all structures: a store, a table, operations, and entities bound to the table.

    class Counter(Structure[S]):
        @operation
        def increment(self, by: int = 1) -> Steps[int]:
            return (yield from self.calls.upsert(…)).value

    Counter(store).increment()              # int
    await Counter(async_store).increment()  # int

`operation` and `iteration` extend the model's with checks of argument types. An operation cannot call another one; code
that operations share is a plain generator, `yield from self._add(…)`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from typing_extensions import TypeVar

from isotone import model
from isotone.errors import UsageError
from isotone.model import (
    AsyncStore,
    Batches,
    Calls,
    Entity,
    Host,
    Steps,
    Store,
    Table,
    capabilities_of,
    index_features,
)
from isotone.shown_signature import show_signatures
from isotone.structures.argument_checks import MethodParameters, checked

E = TypeVar("E", bound=Entity)
S = TypeVar("S", bound=Store | AsyncStore, default=Store)
"""The kind of store of a structure; `Store` by default."""

__all__ = ["Batches", "Structure", "after", "bind_entity", "iteration", "operation"]

if TYPE_CHECKING:
    from isotone.model import iteration, operation
else:

    def operation(function):
        """Mark a method that returns steps as an operation of its structure."""
        return model.operation(function, _argument_check(function))

    def iteration(function):
        """Mark a method that returns batches as an iteration of its structure."""
        return model.iteration(function, _argument_check(function))


_WITHOUT_INDEX: Final = "keep what it orders in an entity of yours, whose sort key is that order"
_WITHOUT_CONDITIONS: Final = "let the engine isolate writes that depend on the stored item, or let one process write an entity of yours"
_BINDING: Final = threading.Lock()


def _argument_check(function: Callable[..., Any]) -> Callable[[Any, Any, Any], None]:
    check, name = MethodParameters(function).check, function.__name__

    def check_arguments(structure: Any, args: Any, kwargs: Any) -> None:
        check(f"{type(structure).__name__}.{name}", args, kwargs)

    return check_arguments


@show_signatures
class Structure(Host[S]):
    """The base of all structures: a store, its calls as steps, and a table."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        show_signatures(cls)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign] # same signature

    def __init__(self, store: S, table: Table) -> None:
        if not isinstance(store, Store | AsyncStore):
            raise UsageError(
                f"{type(self).__name__} takes a store, not {store!r}; write "
                f"{type(self).__name__}(isotone.connect(…), …)"
            )
        if not isinstance(table, Table):
            raise UsageError(
                f"table={table!r} is not a table; write table={type(self).__name__}.layout(…), or give one of "
                "yours"
            )
        self.store: S = store
        self.run: Callable[[Steps[Any]], Any] = store.run
        self.run_batches: Callable[[Batches[Any]], Any] = store.run_batches
        self.calls: Calls = store.calls
        self.table = table
        self.require("conditional_writes", _WITHOUT_CONDITIONS)

    def __repr__(self) -> str:
        names = map(vars(self).get, ("name", "relation", "namespace", "scope"))
        parts = [repr(name) for name in names if name is not None]
        return f"{type(self).__name__}({', '.join([*parts, f'table={self.table.name!r}'])})"

    def require(self, feature: str, instead: str = "") -> None:
        """Raise `Unsupported` if the engine lacks a feature that the structure needs; `instead` says what to do.

        An async store that does not know its engine yet cannot ask it in a constructor, so the first operation does.
        """
        store, what = self.store, f"this {type(self).__name__}"
        if isinstance(store, Store) or store.engine.known is not None:
            store.capabilities.require([feature], what, instead)
            return
        following = self.run

        def checked_run(steps: Steps[Any]) -> Any:
            def check_first() -> Steps[Any]:
                capabilities = yield from capabilities_of(store.engine)
                capabilities.require([feature], what, instead)
                self.run = store.run
                return (yield from steps)

            return following(check_first())

        self.run = checked_run

    def now(self) -> float:
        """Seconds since the epoch, by the store's clock."""
        return self.calls.clock.now()

    def after(self, seconds: float) -> datetime:
        """The time in `seconds` seconds from now, by the store's clock."""
        return after(self.calls, seconds)

    def bind(self, kind: type[E]) -> type[E]:
        """The entity class of a kind in this structure's table; see `bind_entity`.

        Raises `Unsupported` if the engine lacks an index that the kind's keys are in. Other indexes of the table are
        not checked.
        """
        entity = bind_entity(self.table, kind)
        for feature in index_features(entity.__schema__):
            self.require(feature, _WITHOUT_INDEX)
        return entity

    @operation
    def create_table(self) -> Steps[None]:
        """Create the structure's table, unless it exists."""
        yield from self.calls.create_tables(self.table)


def after(calls: Calls, seconds: float) -> datetime:
    """The time in `seconds` seconds from now, by the clock of a store."""
    return datetime.fromtimestamp(calls.clock.now(), UTC) + timedelta(seconds=seconds)


def bind_entity(table: Table, kind: type[E]) -> type[E]:
    """The class of a kind of entity in a table; concurrent calls get the same class.

    A structure declares its entities without a table, so that it can use any table. This creates the subclass
    with the table's keys.
    """
    with _BINDING:
        known = table.entities.get(kind.__name__)
        if known is not None and issubclass(known.entity, kind):
            return known.entity
        return cast("type[E]", type(kind.__name__, (kind,), {}, table=table))
