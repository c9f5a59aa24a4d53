"""`connect` and `aconnect` open a store at an address: tapes, observers, clock, table prefix, cursor secret.

All options besides the address are explained once, by `StoreOptions`.
"""

from __future__ import annotations

import difflib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Final, Unpack, cast

from isotone.backends import opening
from isotone.backends.capabilities import DYNAMODB, Capabilities
from isotone.backends.engines import ENGINES, EngineIdentity, capabilities_of
from isotone.backends.interface import InEventLoop
from isotone.backends.opening import MEMORY, Opened, OpenedAsync, Target
from isotone.clock import Clock, SystemClock
from isotone.errors import UsageError
from isotone.model.key_records import KeyRecords
from isotone.model.observing import AsyncObserved, Observed, Observer
from isotone.model.reading.cost import Report, warn
from isotone.model.reading.cursors import CursorCipher
from isotone.model.reading.reader import Reader
from isotone.model.store import AsyncStore, Store
from isotone.model.table_renaming import AsyncRenamed, Naming, Renamed, TableNames
from isotone.shown_signature import shown

_SECRET_SIZE: Final = 32  # bytes
_DEADLINE: Final = 60.0  # seconds


class StoreOptions(opening.OpenOptions, total=False):
    """The options of a store, in addition to those of the address (`region`, `retries`, …):

    `cursor_secret` signs cursors: 16 bytes or more, the same in all processes that exchange them. Without it,
    cursors are valid only for this store object. `cursor_lifetime`: seconds after which cursors expire.
    `deadline`: seconds after which a call stops retrying; 60 by default.
    `engine`: the name of the engine (`isotone.ENGINES`), where the address does not say what it is and a server is not
    to be asked. `capabilities`: what the engine can do, instead of what is known of it.
    `check_keys=False` neither reads nor writes the record of each table's keys (`_keys`).
    `table_prefix` is put before the name of each table. `table_names`: the names of tables, by the declared ones, or
    a function that returns them; the prefix is not put before these.
    `report` is called with wasteful reads; the default emits a Python warning, None disables reports.
    `observe`: observers of every request (`isotone.to_log()`, `isotone.to_spans()`).
    `tape`: a file that answers requests if it exists, and records them otherwise.
    """

    capabilities: Capabilities
    check_keys: bool
    cursor_secret: bytes
    deadline: float
    engine: str
    cursor_lifetime: float
    report: Report | None
    observe: Sequence[Observer]
    table_names: Naming
    table_prefix: str
    tape: str | PathLike[str]


@shown
def connect(target: Target = MEMORY, **options: Unpack[StoreOptions]) -> Store:
    """Connect to a store at an address. Nothing is sent before the store is used.

    `"shop.db"` is a file, `":memory:"` a database that lives as long as the store, `"http://localhost:8000"`
    a server, and `"dynamodb://eu-west-1"` Amazon's service. An `isotone.Database`, a boto3 client, or any
    object with `execute(operation, request)` is used directly. `StoreOptions` explains the options.

    >>> import isotone
    >>> with isotone.connect() as store:
    ...     store.create_tables(isotone.Table("shop"))
    ['shop']

    Raises `UsageError` for something that is not an address, `NoCredentials` if Amazon's needs some.
    """
    _check(options)
    backend, close = _taped(target, options)
    if observers := options.get("observe", ()):
        backend = Observed(backend, observers)
    names = _names(options)
    if names is not None:
        backend = Renamed(backend, names)
    clock = _clock(target, options)
    return Store(
        backend,
        _reader(options, clock),
        clock,
        close,
        options.get("deadline", _DEADLINE),
        _engine_identity(target, options),
        names,
    )


@shown
def aconnect(target: Target = MEMORY, **options: Unpack[StoreOptions]) -> AsyncStore:
    """Connect to an async store, as `connect` does; also accepts an aioboto3 client.

    A file is read and written in worker threads, so the event loop does not wait for the disk.

        async with isotone.aconnect("http://localhost:8000") as store:
            await store.put(order)
    """
    _check(options)
    backend, close = _taped_async(target, options)
    if observers := options.get("observe", ()):
        backend = AsyncObserved(backend, observers)
    names = _names(options)
    if names is not None:
        backend = AsyncRenamed(backend, names)
    clock = _clock(target, options)
    return AsyncStore(
        backend,
        _reader(options, clock),
        clock,
        close,
        options.get("deadline", _DEADLINE),
        _engine_identity(target, options),
        names,
    )


def _engine_identity(target: Target, options: StoreOptions) -> EngineIdentity:
    """The given engine, or the address's. A tape that is replayed counts as DynamoDB."""
    name, given = options.get("engine"), options.get("capabilities")
    if given is not None:
        return EngineIdentity(given)
    tape = options.get("tape")
    if tape is not None and Path(tape).exists():
        return EngineIdentity(capabilities_of(name) if name else DYNAMODB)
    return opening.engine_of(target, name, **_of_address(options))


def _clock(target: Target, options: StoreOptions) -> Clock:
    """The given clock, the clock of a given database, or the system clock."""
    given = options.get("clock") or getattr(getattr(target, "engine", None), "clock", None)
    return given or SystemClock()


def _names(options: StoreOptions) -> TableNames | None:
    """How table names are changed in this deployment; None if the declared names are used."""
    prefix, names = options.get("table_prefix", ""), options.get("table_names")
    return TableNames(prefix, names) if prefix or names else None


def _reader(options: StoreOptions, clock: Clock) -> Reader:
    secret = options.get("cursor_secret")
    if secret is None:
        secret = secrets.token_bytes(_SECRET_SIZE)
    cursors = CursorCipher(secret, clock, options.get("cursor_lifetime"))
    records = KeyRecords(is_checked=options.get("check_keys", True))
    return Reader(cursors, records, clock, options.get("report", warn))


def _check(options: StoreOptions) -> None:
    known = StoreOptions.__annotations__  # of a TypedDict, these include its bases' options
    for name in options.keys() - known.keys():
        close = difflib.get_close_matches(name, known, n=1)
        hint = (
            f"did you mean {close[0]}?" if close else f"the options are {', '.join(sorted(known))}"
        )
        raise UsageError(f"{name} is not an option; {hint}")
    for name, given in options.items():
        fits, wanted = _WANTED[name]
        if given is not None and not fits(given):
            raise UsageError(f"{name}={given!r} is not valid; give {wanted}")


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, kinds) and not isinstance(given, bool)


def _is_prefix(given: Any) -> bool:
    return isinstance(given, str) and re.fullmatch(r"[A-Za-z0-9_.-]{0,255}", given) is not None


def _are_seconds(given: Any) -> bool:
    return _is(int, float)(given) and given >= 0


def _is_lifetime(given: Any) -> bool:
    return _are_seconds(given) and 0 < given < inf


def _is_clock(given: Any) -> bool:
    if isinstance(given, type) or not callable(getattr(given, "now", None)):
        return False
    return isinstance(given.now(), int | float)


def _is_source(given: Any) -> bool:
    from isotone.backends.credentials import Credentials

    return callable(given) or isinstance(given, Credentials)


def _is_retries(given: Any) -> bool:
    from isotone.backends.request_retries import Retries

    return isinstance(given, Retries)


def _is_timeouts(given: Any) -> bool:
    from isotone.backends.endpoint import Timeouts

    return isinstance(given, Timeouts)


def _are_observers(given: Any) -> bool:
    return isinstance(given, Sequence) and all(map(callable, given))


# For each option: a test of its value, and what to give instead of an invalid one.
_WANTED: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "clock": (
        _is_clock,
        "a clock: isotone.SystemClock(), isotone.ManualClock(…), or an object whose now() gives seconds "
        "since 1970",
    ),
    "busy_timeout": (_are_seconds, "seconds"),
    "capabilities": (_is(Capabilities), "isotone.Capabilities(…)"),
    "check_keys": (lambda given: isinstance(given, bool), "True or False"),
    "connections": (_is(int), "an int"),
    "credentials": (_is_source, "isotone.Credentials(…), or a function that gives them"),
    "cursor_lifetime": (_is_lifetime, "seconds, more than 0"),
    "cursor_secret": (_is(bytes, bytearray), "bytes, 16 or more"),
    "deadline": (_are_seconds, "seconds"),
    "durability": (_is(str), "'disk', 'process' or 'none'"),
    "engine": (_is(str), f"one of {', '.join(sorted(ENGINES))}"),
    "memory_map": (_is(int), "a number of bytes"),
    "observe": (_are_observers, "a list of observers, such as [isotone.to_log()]"),
    "profile": (_is(str), "a string"),
    "region": (_is(str), "a string"),
    "report": (callable, "a function that takes an isotone.WastefulRead, or None"),
    "retries": (_is_retries, "isotone.Retries(…)"),
    "table_names": (
        lambda given: callable(given) or isinstance(given, Mapping),
        "a dict, such as {'shop': 'shop-eu'}, or a function from a declared name to another",
    ),
    "table_prefix": (_is_prefix, "letters, digits, _, - and ."),
    "tape": (_is(str, PathLike), "a path"),
    "timeouts": (_is_timeouts, "isotone.Timeouts(…)"),
}


def _taped(target: Target, options: StoreOptions) -> Opened:
    tape = options.get("tape")
    if tape is None:
        return opening.open_backend(target, **_of_address(options))
    from isotone.backends.recording import Player, Recorder, TapeWriter

    if Path(tape).exists():
        return Opened(Player(tape), _nothing)
    backend, close = opening.open_backend(target, **_of_address(options))
    with _closed_on_failure(close):
        writer = TapeWriter(tape)
    return Opened(Recorder(backend, writer), _both(writer.close, close))


def _taped_async(target: Target, options: StoreOptions) -> OpenedAsync:
    tape = options.get("tape")
    if tape is None:
        return opening.open_async_backend(target, **_of_address(options))
    from isotone.backends.recording import AsyncRecorder, Player, TapeWriter

    if Path(tape).exists():
        return OpenedAsync(InEventLoop(Player(tape)), _nothing)
    backend, close = opening.open_async_backend(target, **_of_address(options))
    with _closed_on_failure(close):
        writer = TapeWriter(tape)
    return OpenedAsync(AsyncRecorder(backend, writer), _both(writer.close, close))


def _of_address(options: StoreOptions) -> opening.OpenOptions:
    named: Any = options
    return cast(
        opening.OpenOptions,
        {name: each for name, each in named.items() if name in opening.OpenOptions.__annotations__},
    )


@contextmanager
def _closed_on_failure(close: Callable[[], None]) -> Iterator[None]:
    """Close a backend again if the block fails."""
    try:
        yield
    except BaseException:
        close()
        raise


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def close() -> None:
        try:
            first()
        finally:
            second()

    return close


def _nothing() -> None:
    """Do nothing: a tape needs no closing."""
