"""The known engines and what each can do, and how the engine at an address is identified.

The sources of every fact are on docs/engines.md. An address names its engine (`alternator://…`, a file), or its host
does (`….amazonaws.com`). Any other server is asked once, when the engine is first needed: Isotone and Alternator answer
`GET /localnodes`, and only Isotone signs as `Server: Server`; DynamoDB Local is a Jetty; ExtendDB forbids frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, urlencode

from isotone.backends.capabilities import DYNAMODB, Capabilities
from isotone.errors import UsageError

_MINUTE: Final = 60.0
_DAY: Final = 24 * 3600.0

ENGINES: Final[Mapping[str, Capabilities]] = MappingProxyType(
    {
        "dynamodb": DYNAMODB,
        "isotone": Capabilities(
            "Isotone",
            stream_lag=0.0,
            expiry_lag=_MINUTE,
            provisioned_throughput=False,  # stored, but nothing is throttled
        ),
        "dynamodb-local": Capabilities(
            "DynamoDB Local",
            vectors=False,
            expiry_lag=_MINUTE,
            tags=False,
            provisioned_throughput=False,
            backups=False,
            exports=False,
            global_tables=False,
        ),
        "alternator": Capabilities(
            "Alternator",
            transactions=False,
            partiql=False,
            vectors=False,
            capacity_units=False,
            index_projections=False,
            wide_index_keys=False,
            streams=False,  # an experimental feature that a cluster may have enabled
            exact_streams=False,
            stream_lag=10.0,
            expiry_lag=_DAY,
            marked_expiry=False,
            provisioned_throughput=False,
            backups=False,
            exports=False,
            global_tables=False,
        ),
        "extenddb": Capabilities(
            "ExtendDB",
            partiql=False,
            expiry_lag=_MINUTE,
            exports=False,  # to folders on its own machine
            global_tables=False,
        ),
        "azure-table": Capabilities(
            "Azure Table storage",
            transactions=False,
            partition_transactions=True,
            descending=False,
            parallel_scan=False,
            partiql=False,
            vectors=False,
            capacity_units=False,
            global_indexes=False,
            local_indexes=False,
            added_indexes=False,
            index_projections=False,
            wide_index_keys=False,
            streams=False,
            exact_streams=False,
            expiry=False,
            marked_expiry=False,
            tags=False,
            provisioned_throughput=False,
            backups=False,
            exports=False,
            global_tables=False,
            consistent_reads=frozenset(("table",)),
            # Isotone keeps DynamoDB's limit for items. A key has at most Azure's 512 characters.
            partition_key_size=512,
            sort_key_size=512,
        ),
    }
)
"""What each known engine can do, by name. `dataclasses.replace` makes a variant.

>>> ENGINES["alternator"].transactions
False
"""

_SCHEMES: Final = {
    "dynamodb": "dynamodb",
    "alternator": "alternator",
    "alternator+https": "alternator",
    "azure-table": "azure-table",
}


def capabilities_of(name: str) -> Capabilities:
    """The capabilities of an engine by its name; raises `UsageError` for an unknown one."""
    try:
        return ENGINES[name]
    except (KeyError, TypeError):
        raise UsageError(
            f"engine={name!r} is not known; write one of {', '.join(sorted(ENGINES))}, or describe yours with "
            "capabilities=isotone.Capabilities(…)"
        ) from None


class EngineIdentity:
    """The engine behind a store: known from the start, or identified by one request.

    `ask` returns the engine, or None if there was no answer; then the next caller asks again.
    """

    __slots__ = ("_ask", "known")

    def __init__(
        self, known: Capabilities | None, ask: Callable[[], Capabilities | None] | None = None
    ) -> None:
        self.known = known
        self._ask = ask

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities as known so far; DynamoDB's if nothing is known."""
        return self.known or DYNAMODB

    def identify(self) -> Capabilities:
        """The capabilities; asks the server if necessary. Blocks."""
        if self.known is None and self._ask is not None:
            self.known = self._ask()
        return self.capabilities


def without_engine(address: str) -> tuple[str, str | None]:
    """Split the parameter `engine` off an address.

    >>> without_engine("http://localhost:8000?engine=isotone")
    ('http://localhost:8000', 'isotone')
    """
    start, separator, query = address.partition("?")
    if "://" not in start or not separator:
        return address, None
    pairs = parse_qsl(query, keep_blank_values=True)
    given = [value for name, value in pairs if name == "engine"]
    rest = urlencode([(name, value) for name, value in pairs if name != "engine"])
    return (f"{start}?{rest}" if rest else start), (given[-1] if given else None)


def engine_of_scheme(scheme: str) -> str | None:
    """The engine that an address's scheme names; None for `http` and `https`."""
    return _SCHEMES.get(scheme)


def engine_of_answer(status: int, headers: Mapping[bytes, bytes], body: bytes) -> str:
    """The engine that gave this answer to `GET /localnodes`; `dynamodb` for an unknown one.

    >>> engine_of_answer(200, {b"server": b"Seastar httpd"}, b'["10.0.0.1","10.0.0.2"]')
    'alternator'
    """
    server = headers.get(b"server", b"")
    if status == 200 and body.lstrip().startswith(b"["):
        return "isotone" if server == b"Server" else "alternator"
    if server.startswith(b"Jetty"):
        return "dynamodb-local"
    if not server and headers.get(b"x-frame-options", b"").upper() == b"DENY":
        return "extenddb"
    return "dynamodb"
