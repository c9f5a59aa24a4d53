"""`mock_dynamodb`: boto3, aioboto3 and botocore use a database in memory while it is active.

It follows moto's rules where moto has one. Each region has its own database. A nested mock shares the
databases of the outer one; the outermost starts empty, and its data is discarded when it stops. If the
environment has no AWS credentials or region, dummy ones are set while the mock is active. boto3's default
session is restored afterwards.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

import isotone
from isotone.errors import UsageError
from isotone.testing.decoration import decorate
from isotone.testing.patches import Patches

if TYPE_CHECKING:
    from isotone.backends.embedded import Database

Target = TypeVar("Target", bound=Callable[..., Any])
OtherServices = Literal["refuse", "pass"]

_ACCOUNT: Final = "123456789012"
_REGION: Final = "us-east-1"
_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": _REGION,
}


class MockDynamoDB:
    """The result of `mock_dynamodb()`: a context manager and decorator with `start()` and `stop()`."""

    def __init__(
        self, database: Database | None = None, other_services: OtherServices = "refuse"
    ) -> None:
        if other_services not in ("refuse", "pass"):
            raise UsageError(f'other_services is "refuse" or "pass", not {other_services!r}')
        self._given = database
        self._other_services = other_services
        self._entered: list[_Scope] = []

    def start(self) -> Database:
        """Activate the mock; returns the database of the default region."""
        scope = _active.enter(self._given, self._other_services)
        self._entered.append(scope)
        return scope.database(os.environ.get("AWS_DEFAULT_REGION", _REGION))

    def stop(self) -> None:
        """Undo the last `start`; raises `UsageError` if the mock is not active."""
        if not self._entered:
            raise UsageError("this mock_dynamodb is not active: stop() without start()")
        _active.leave(self._entered.pop())

    def in_region(self, region: str) -> Database:
        """The database of a region, while the mock is active."""
        if not self._entered:
            raise UsageError("this mock_dynamodb is not active, so it has no databases")
        return self._entered[-1].database(region)

    def __enter__(self) -> Database:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __call__(self, target: Target) -> Target:
        """Activate the mock while a function runs, or in each test of a class."""
        return decorate(target, self)


@overload
def mock_dynamodb(target: Target, /) -> Target: ...
@overload
def mock_dynamodb(
    *, database: Database | None = None, other_services: OtherServices = "refuse"
) -> MockDynamoDB: ...
def mock_dynamodb(
    target: Any = None,
    /,
    *,
    database: Database | None = None,
    other_services: OtherServices = "refuse",
) -> Any:
    """Answer all DynamoDB requests of botocore, boto3 and aioboto3 from memory.

    Use it as `@mock_dynamodb` on functions, coroutine functions and test classes, or as
    `with mock_dynamodb() as database:`. A given `database` serves every region. Requests to other services
    raise `UsageError`; with `other_services="pass"` they are sent.

    >>> import boto3
    >>> with mock_dynamodb():
    ...     boto3.client("dynamodb").list_tables()["TableNames"]
    []
    """
    mock = MockDynamoDB(database, other_services)
    return mock if target is None else mock(target)


@overload
def mock_aws(target: Target, /) -> Target: ...
@overload
def mock_aws(*, config: Mapping[str, Any] | None = None) -> MockDynamoDB: ...
def mock_aws(target: Any = None, /, *, config: Mapping[str, Any] | None = None) -> Any:
    """`mock_dynamodb` under moto's name and with moto's `config`, to switch by changing one import.

    Only `core.passthrough` of `config` is used: if it is not empty, requests to other services are sent.
    """
    passes = (config or {}).get("core", {}).get("passthrough")
    mock = MockDynamoDB(other_services="pass" if passes else "refuse")
    return mock if target is None else mock(target)


class _Scope:
    """The databases of an outermost mock, and of those inside it that share them."""

    def __init__(self, given: Database | None, other_services: OtherServices) -> None:
        self.other_services = other_services
        self._given = given
        self._lock = threading.Lock()
        self._by_region: dict[str, Database] = {}

    def database(self, region: str) -> Database:
        if self._given is not None:
            return self._given
        with self._lock:
            if region not in self._by_region:
                self._by_region[region] = isotone.open(region=region, account=_ACCOUNT)
            return self._by_region[region]

    def close(self) -> None:
        for database in self._by_region.values():
            database.close()


class _Active:
    """The active mocks of this process; the innermost one answers."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._scopes: list[_Scope] = []
        self._patches = Patches(self)
        self._surroundings = _Surroundings()

    def enter(self, given: Database | None, other_services: OtherServices) -> _Scope:
        with self._lock:
            if not self._scopes:
                self._patches.apply()
                self._surroundings.set(credentials=other_services == "refuse")
            shares = self._scopes and given is None
            scope = self._scopes[-1] if shares else _Scope(given, other_services)
            self._scopes.append(scope)
            return scope

    def leave(self, scope: _Scope) -> None:
        with self._lock:
            last = len(self._scopes) - 1 - self._scopes[::-1].index(scope)
            del self._scopes[last]
            if scope not in self._scopes:
                scope.close()
            if not self._scopes:
                self._surroundings.restore()
                self._patches.remove()

    def database(self, region: str) -> Database:
        return self._scopes[-1].database(region)

    def lets_pass(self, service: str) -> bool:
        return self._scopes[-1].other_services == "pass"


class _Surroundings:
    """Sets environment variables, and restores them and boto3's default session."""

    def __init__(self) -> None:
        self._variables: list[str] = []
        self._session: Any = None

    def set(self, *, credentials: bool) -> None:
        self._session = getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)
        if credentials:
            self._variables = [name for name in _ENVIRONMENT if name not in os.environ]
            os.environ.update({name: _ENVIRONMENT[name] for name in self._variables})

    def restore(self) -> None:
        for name in self._variables:
            os.environ.pop(name, None)
        self._variables = []
        if "boto3" in sys.modules:
            sys.modules["boto3"].DEFAULT_SESSION = self._session  # type: ignore[attr-defined]


_active: Final = _Active()
