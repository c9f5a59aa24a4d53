"""`mock_dynamodb`, `mock_aws`: boto3, aioboto3 and botocore use a database in memory while active; `NotStarted`.

It follows moto's rules where there are any. Each account and region has its own database. A nested mock shares the
databases of the outer one; the outermost starts empty, and its data is discarded when it stops. `environment.py` sets
the environment, `patches.py` patches botocore.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, overload

import isotone
from isotone.backends.s3 import S3
from isotone.errors import NotStarted, UsageError
from isotone.testing.decoration import decorate
from isotone.testing.environment import DEFAULT_REGION, EnvironmentChanges, MockEnvironment
from isotone.testing.patches import DYNAMODB, Patches
from isotone.testing.process_s3 import ProcessS3

if TYPE_CHECKING:
    from isotone.backends.embedded import Database

Target = TypeVar("Target", bound=Callable[..., Any])
OtherServices = Literal["refuse", "pass"]
PassedOn = Callable[[str, str], bool]
"""Whether requests to a service, at a URL, may leave the process."""

Buckets = str | os.PathLike[str] | S3
"""The buckets of exports and imports, as for `isotone.open`."""

_ACCOUNT: Final = "123456789012"
_ADVICE: Final = (
    "activate moto's mock_aws as well, or name a folder for the buckets: mock_dynamodb(s3='folder')"
)


class MockDynamoDB:
    """The result of `mock_dynamodb()`: a context manager and decorator with `start()` and `stop()`."""

    def __init__(
        self,
        database: Database | None,
        *,
        passed_on: PassedOn,
        wanted: EnvironmentChanges,
        s3: Buckets | None = None,
    ) -> None:
        if database is not None and s3 is not None:
            raise UsageError(
                "s3= is for the databases that the mock makes, and database= was given; write isotone.open(…, s3=…)"
            )
        self._given = database
        self._s3 = s3
        self._passed_on = passed_on
        self._wanted = wanted
        self._entered: list[_Scope] = []

    def start(self, reset: bool = True) -> Database:
        """Activate the mock; returns the database of the default region.

        `reset=False` continues with the data that the last `stop(remove_data=False)` kept.
        """
        self._enter(reset)
        return self.in_region(os.environ.get("AWS_DEFAULT_REGION", DEFAULT_REGION))

    def stop(self, remove_data: bool = True) -> None:
        """Undo the last `start`; raises `NotStarted`, which is a `RuntimeError`, if the mock is not active."""
        self._scope("stop() without start()")
        _active.leave(self._entered.pop(), remove_data)

    def reset(self) -> None:
        """Delete all data of the mock, which stays active. Refused if the mock was given a `database=`."""
        self._scope("it has no data to reset").reset()

    def in_region(self, region: str) -> Database:
        """The database of a region, while the mock is active."""
        return self._scope("it has no databases").database(region)

    def _enter(self, reset: bool) -> None:
        self._entered.append(
            _active.enter(self._given, self._passed_on, self._wanted, reset, self._s3)
        )

    def _scope(self, why: str) -> _Scope:
        if not self._entered:
            raise NotStarted(f"this mock is not active: {why}")
        return self._entered[-1]

    def __enter__(self) -> Database:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, target: Target) -> Target:
        """Activate the mock while a function runs, or in each test of a class."""
        return decorate(target, self, _Continued(self))


class MockAWS(MockDynamoDB):
    """The result of `mock_aws()`, with moto's methods: `start(reset=…)`, `stop()`, `reset()`."""

    def __enter__(self) -> Self:  # type: ignore[override] # as moto's
        self._enter(reset=True)
        return self


class _Continued(AbstractContextManager[None]):
    """Activates a mock and keeps its data for the next call; for helper methods of a decorated class."""

    def __init__(self, mock: MockDynamoDB) -> None:
        self._mock = mock

    def __enter__(self) -> None:
        self._mock._enter(reset=False)

    def __exit__(self, *_: object) -> None:
        self._mock.stop(remove_data=False)


@overload
def mock_dynamodb(target: Target, /) -> Target: ...
@overload
def mock_dynamodb(
    *,
    database: Database | None = None,
    other_services: OtherServices = "refuse",
    s3: Buckets | None = None,
) -> MockDynamoDB: ...
def mock_dynamodb(
    target: Any = None,
    /,
    *,
    database: Database | None = None,
    other_services: OtherServices = "refuse",
    s3: Buckets | None = None,
) -> Any:
    """Answer all DynamoDB requests of botocore, boto3 and aioboto3 from memory.

    Use it as `@mock_dynamodb` on functions, coroutine functions and test classes, or as
    `with mock_dynamodb() as database:`. A given `database` serves every region. Requests to other services
    raise `UsageError`; with `other_services="pass"` they are sent, with the credentials that are there.
    Exports and imports use the buckets of the S3 that is mocked in this process, by moto for example, or those of
    `s3`: a folder, a URL or an `isotone.S3`, as for `isotone.open`.

    >>> import boto3
    >>> with mock_dynamodb():
    ...     boto3.client("dynamodb").list_tables()["TableNames"]
    []
    """
    if other_services not in ("refuse", "pass"):
        raise UsageError(f'other_services is "refuse" or "pass", not {other_services!r}')
    passes = other_services == "pass"
    mock = MockDynamoDB(
        database,
        passed_on=lambda service, url: passes and service not in DYNAMODB,
        wanted=EnvironmentChanges(credentials=not passes),
        s3=s3,
    )
    return mock if target is None else mock(target)


@overload
def mock_aws(target: Target, /) -> Target: ...
@overload
def mock_aws(*, config: Mapping[str, Any] | None = None, s3: Buckets | None = None) -> MockAWS: ...
def mock_aws(
    target: Any = None,
    /,
    *,
    config: Mapping[str, Any] | None = None,
    s3: Buckets | None = None,
) -> Any:
    """`mock_dynamodb` under moto's name and with moto's rules, to switch by changing one import.

    A missing region is an error, as with boto3. `with mock_aws() as mock:` gives the mock. Of `config`, the members
    `mock_credentials`, `reset_boto3_session` and `passthrough` of `core` count.
    """
    core = (config or {}).get("core", {})
    passthrough = core.get("passthrough", {})
    mock = MockAWS(
        None,
        passed_on=_named(passthrough.get("services", ()), passthrough.get("urls", ())),
        wanted=EnvironmentChanges(
            credentials=core.get("mock_credentials", True) is not False,
            region=False,
            fresh_session=core.get("reset_boto3_session", True),
        ),
        s3=s3,
    )
    return mock if target is None else mock(target)


def _named(services: Iterable[str], urls: Iterable[str]) -> PassedOn:
    """Makes a function that lets requests pass to these services, and to URLs that match these expressions."""
    known, patterns = frozenset(services), [re.compile(url) for url in urls]
    return lambda service, url: service in known or any(each.match(url) for each in patterns)


class _Scope:
    """The databases of an outermost mock, shared by the mocks inside it."""

    def __init__(
        self, given: Database | None, passed_on: PassedOn, s3: Buckets | None = None
    ) -> None:
        self.passed_on = passed_on
        self._s3 = s3
        self.is_given = given is not None
        self._given = given
        self._lock = threading.Lock()
        self._homes: dict[str, Database] = {}  # by account
        self._databases: dict[tuple[str, str], Database] = {}

    def database(self, region: str) -> Database:
        if self._given is not None:
            return self._given.in_region(region)
        place = account(), region
        with self._lock:
            if place not in self._databases:
                home = self._homes.get(place[0])
                if home is None:
                    home = isotone.open(
                        region=region, account=place[0], regions=True, s3=self._buckets(region)
                    )
                    self._homes[place[0]] = home
                self._databases[place] = home.region(region)
            return self._databases[place]

    def _buckets(self, region: str) -> Buckets:
        """The buckets that the mock was given, or else those of the S3 that is mocked in this process."""
        if self._s3 is not None:
            return self._s3
        return ProcessS3(
            region=region, advice=_ADVICE, passes=lambda url: self.passed_on("s3", url)
        )

    def reset(self) -> None:
        if self.is_given:
            raise UsageError(
                "reset() would empty the database that this mock was given; clear() it"
            )
        for database in self._homes.values():
            database.clear()

    def close(self) -> None:
        for database in self._homes.values():
            database.close()


def account() -> str:
    """The account whose tables are used, determined as in moto."""
    return os.environ.get("MOTO_ACCOUNT_ID", _ACCOUNT)


class _Active:
    """The active mocks of this process; the innermost one answers."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._scopes: list[_Scope] = []
        self._kept: _Scope | None = None
        self._patches = Patches(self)
        self._environment = MockEnvironment()

    def enter(
        self,
        given: Database | None,
        passed_on: PassedOn,
        wanted: EnvironmentChanges,
        reset: bool,
        s3: Buckets | None,
    ) -> _Scope:
        with self._lock:
            if s3 is not None and self._scopes:
                raise UsageError(
                    "this mock shares the databases of the one around it, so it takes no s3=; give it to the outermost"
                )
            if not self._scopes:
                self._patches.apply()
                self._environment.set(wanted)
            if given is not None:
                scope = _Scope(given, passed_on)
            elif self._scopes:
                scope = self._scopes[-1]
            else:
                scope = self._first(passed_on, reset, s3)
            self._scopes.append(scope)
            return scope

    def _first(self, passed_on: PassedOn, reset: bool, s3: Buckets | None) -> _Scope:
        kept, self._kept = self._kept, None
        if kept is not None and not reset:
            kept.passed_on = passed_on
            return kept
        if kept is not None:
            kept.close()
        return _Scope(None, passed_on, s3)

    def leave(self, scope: _Scope, remove_data: bool) -> None:
        with self._lock:
            last = len(self._scopes) - 1 - self._scopes[::-1].index(scope)
            del self._scopes[last]
            if scope not in self._scopes:
                if remove_data or scope.is_given:
                    scope.close()
                else:
                    self._kept = scope
            if not self._scopes:
                self._environment.restore()
                self._patches.remove()

    def database(self, region: str) -> Database:
        return self._scopes[-1].database(region)

    def account(self) -> str:
        return account()

    def passes(self, service: str, url: str) -> bool:
        return self._scopes[-1].passed_on(service, url)


_active: Final = _Active()
