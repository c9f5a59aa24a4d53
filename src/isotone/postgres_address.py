"""The address of a PostgreSQL database: libpq's own URL, and a `schema` for the trees (`PostgresAddress`).

    postgresql://user@host1,host2:5433/db?schema=shop&sslmode=verify-full

`read_replica=host[:port]` names a server that may answer eventually consistent reads; it has an address of its own.
Everything else goes to libpq as it is, so its environment variables, password files and service files work. What
the address does not set gets a default that notices a lost server within seconds. No message shows a password: `hidden`
takes it out of any text that may quote an address, also where the address is none, or stands in place of a file.

>>> address_of("postgresql://ann:secret@db.internal/app?schema=shop").shown
'postgresql://ann@db.internal/app?schema=shop'
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeGuard
from urllib.parse import parse_qsl, unquote, urlencode

from isotone.errors import UsageError

SCHEMES: Final = ("postgresql://", "postgres://")
DEFAULT_SCHEMA: Final = "isotone"
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_HOST: Final = re.compile(
    r"(?P<host>/[^,:]+|\[[0-9a-fA-F:.]+\]|[^/,:\[\]]+)(:(?P<port>[0-9]{1,5}))?"
)
_PLACES: Final = frozenset(("host", "hostaddr", "port", "target_session_attrs", "connect_timeout"))
_SECRETS: Final = frozenset(("password", "sslpassword"))
# a password ends at the last @ before the parameters; it may have characters that an address writes as %2F
_PASSWORD: Final = re.compile(r"(postgres(?:ql)?:/+[^\s:/?@]*):(?:(?!\?\w+=)\S)*@", re.IGNORECASE)
_SECRET: Final = re.compile(r"([?&](?:ssl)?password=)[^&\s'\"]*", re.IGNORECASE)
_DEFAULTS: Final = {
    "application_name": "isotone",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "target_session_attrs": "read-write",  # of several hosts, the primary
    "tcp_user_timeout": "20000",
}


class NoDatabase(UsageError):
    """The schema of an address that is only read has no database yet."""


class PostgresAddress(NamedTuple):
    """An address in its parts: `uri` is libpq's, `defaults` its parameters that the address does not set, `shown` has no
    password, `replica` is the address of the replica, or empty.
    """

    uri: str
    schema: str
    defaults: dict[str, str]
    shown: str
    replica: str


def is_postgres(target: object) -> TypeGuard[str]:
    """Whether a target is the address of a PostgreSQL database."""
    return isinstance(target, str) and target.startswith(SCHEMES)


def address_of(text: str) -> PostgresAddress:
    """The parts of an address; raises `UsageError` for a schema that is none of ours."""
    base, _, query = text.partition("?")
    if _is_unescaped(base, query):
        raise UsageError(
            f"{shown(text)!r}: the characters / ? @ of a password are written %2F %3F %40 in an address"
        )
    try:
        given = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise UsageError(
            f"{shown(text)!r}: the part after '?' is not of the form name=value&…"
        ) from None
    settings = dict(given)
    schema = settings.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise UsageError(
            f"schema={schema!r} cannot name a schema; use lower-case letters, digits and _, "
            "at most 63, and none that begins with pg_"
        )
    replica = settings.pop("read_replica", None)
    uri = f"{base}?{urlencode(settings)}" if settings else base
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in settings}
    others = _replica(base, settings | {"schema": schema}, replica) if replica is not None else ""
    return PostgresAddress(uri, schema, defaults, shown(text), others)


def _replica(base: str, settings: dict[str, str], hosts: str) -> str:
    """The same address with other hosts, each with its port or the default one."""
    scheme, _, rest = base.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, _ = authority.rpartition("@")
    found = [_HOST.fullmatch(host) for host in hosts.split(",")]
    if None in found:
        raise UsageError(
            f"read_replica={hosts!r} is no server; write host, host:port or host1,host2"
        )
    kept = {name: value for name, value in settings.items() if name not in _PLACES}
    placed = {
        "host": ",".join(match["host"].strip("[]") for match in found if match),
        "port": ",".join(match["port"] or "" for match in found if match),
        "target_session_attrs": "prefer-standby",
        "connect_timeout": "2",
    }
    return f"{scheme}://{user}{at}{slash}{path}?{urlencode(kept | placed)}"


def _is_unescaped(base: str, query: str) -> bool:
    """Whether a password seems to have a character that ends it: libpq's error would show the rest as a host or a port."""
    authority, _, path = base.partition("://")[2].partition("/")
    name = f"{path}?{query}".partition("=")[0]  # of the first parameter, which has no @
    _, colon, port = authority.rpartition(":")
    return authority.count("@") > 1 or ("@" in name and bool(colon) and not port.isdigit())


def shown(text: str) -> str:
    """An address as messages show it: without its passwords."""
    base, mark, query = _PASSWORD.sub(r"\1@", text).partition("?")
    kept = [pair for pair in query.split("&") if unquote(pair.partition("=")[0]) not in _SECRETS]
    return f"{base}{mark if any(kept) else ''}{'&'.join(kept)}"


def hidden(text: str) -> str:
    """A text for people without the passwords of the addresses in it.

    >>> hidden("the target postgresql:/ann:se/cret@db/app does not exist")
    'the target postgresql:/ann@db/app does not exist'
    """
    return _SECRET.sub(r"\1…", _PASSWORD.sub(r"\1@", text))
