"""The address of a PostgreSQL database: libpq's own URL, and a `schema` for the trees (`PostgresAddress`).

    postgresql://user@host1,host2:5433/db?schema=shop&sslmode=verify-full

Everything but `schema` goes to libpq as it is, so its environment variables, password files and service files work. What
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
    password.
    """

    uri: str
    schema: str
    defaults: dict[str, str]
    shown: str


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
    uri = f"{base}?{urlencode(settings)}" if settings else base
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in settings}
    return PostgresAddress(uri, schema, defaults, shown(text))


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
