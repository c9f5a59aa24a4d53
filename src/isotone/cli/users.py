"""`isotone user`: the users of a server, their keys, and permissions (--read-only, --tables, --actions, --policy)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from isotone.cli.program import Command, print_error
from isotone.errors import UsageError
from isotone.output_paths import check_regular
from isotone.server.policies import check_user
from isotone.server.users import (
    AccessKey,
    User,
    changing_users,
    check_name,
    new_key,
    read_users,
    readable_by_others,
)
from isotone.text_table import aligned

_FILE: Final = "isotone-credentials.json"
_SERVICE: Final = "dynamodb:"
_TABLES: Final = re.compile(r"[a-zA-Z0-9_.*?-]+")
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_PAIR: Final = """\
The secret is shown only now. A running server reads the file again on SIGHUP (kill -HUP PID).

# as a profile in ~/.aws/credentials
[{name}]
aws_access_key_id = {id}
aws_secret_access_key = {secret}
{token_line}
# or in the environment
export AWS_ACCESS_KEY_ID={id}
export AWS_SECRET_ACCESS_KEY={secret}
{token_export}"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        choices=tuple(_ACTIONS),
        help="what to do: " + ", ".join(_ACTIONS),
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the user (not for list)")
    parser.add_argument(
        "--credentials", metavar="FILE", default=_FILE, help=f"the file of users (default {_FILE})"
    )
    parser.add_argument("--read-only", action="store_true", help="add: the user may only read")
    parser.add_argument(
        "--tables",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        help="add: the user may use only these tables, with * and ?: 'Orders*'",
    )
    parser.add_argument(
        "--actions",
        metavar="PATTERN",
        nargs="+",
        action="extend",
        help="add: the user may use only these actions, with * and ?: GetItem 'Batch*'",
    )
    parser.add_argument(
        "--policy",
        metavar="POLICY",
        help="add: a file with an IAM policy, which must allow what the user does",
    )
    parser.add_argument(
        "--expires",
        metavar="TIME",
        help="add, rotate: the key is valid for this time, such as 12h or 7d, and has a session token",
    )
    parser.add_argument(
        "--overlap",
        metavar="TIME",
        help="rotate: the previous keys stay valid for this time (default: they end at once)",
    )


_FOR: Final = {
    "read_only": ("add",),
    "tables": ("add",),
    "actions": ("add",),
    "policy": ("add",),
    "expires": ("add", "rotate"),
    "overlap": ("rotate",),
}


def _user(arguments: argparse.Namespace) -> int:
    for option, actions in _FOR.items():
        if getattr(arguments, option) and arguments.action not in actions:
            raise UsageError(f"--{option.replace('_', '-')} is for {' and '.join(actions)}")
    if (arguments.name is None) != (arguments.action == "list"):
        raise UsageError(
            f"isotone user {arguments.action} takes "
            + ("a NAME" if arguments.name is None else "no NAME")
        )
    _ACTIONS[arguments.action](arguments)
    return 0


def _add(arguments: argparse.Namespace) -> None:
    check_name(arguments.name)
    key = new_key(_lifetime(arguments.expires))
    user = User(
        keys=[key],
        read_only=arguments.read_only,
        tables=arguments.tables,
        actions=arguments.actions,
        policy=_policy(arguments.policy),
    )
    check_user(arguments.name, user)
    _check_limits(user)
    result = f"{arguments.name} was added to {arguments.credentials}: {_access(user)}."
    show = partial(_print_pair, result, arguments.name, key)
    with changing_users(arguments.credentials, announce=show) as users:
        if arguments.name in users:
            raise UsageError(
                f"there is a user {arguments.name} already; isotone user rotate {arguments.name} gives a new key"
            )
        users[arguments.name] = user


def _check_limits(user: User) -> None:
    """Refuse options that allow nothing, and warn if a policy names unknown actions; IAM accepts those, too."""
    from isotone.backends.embedded import permissions

    known = permissions()

    def is_unknown(pattern: str) -> bool:
        name = pattern.lower().removeprefix(_SERVICE)
        return not any(fnmatchcase(each.lower(), name) for each in known)

    for pattern in filter(is_unknown, user.actions or ()):
        near = get_close_matches(pattern, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "write one such as GetItem or 'Batch*'"
        raise UsageError(f"--actions: DynamoDB has no action {pattern!r}; {hint}")
    for pattern in user.tables or ():
        if not _TABLES.fullmatch(pattern):
            raise UsageError(
                f"--tables: no table can be named {pattern!r}; write a name, or a pattern such as 'Orders*'"
            )
    named = (user.policy or {}).get("Statement", [])
    for statement in named if isinstance(named, list) else [named]:
        for member in ("Action", "NotAction"):
            texts = statement.get(member, ())
            for text in [texts] if isinstance(texts, str) else texts:
                if text.lower().startswith(_SERVICE) and is_unknown(text):
                    print_error(f"warning: the policy has {text}, but DynamoDB has no such action")


def _rotate(arguments: argparse.Namespace) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    key = new_key(_lifetime(arguments.expires), now=now)
    overlap = _lifetime(arguments.overlap)
    kept: list[AccessKey] = []

    def show() -> None:
        _print_pair(_rotated(arguments, key, kept), arguments.name, key)

    with changing_users(arguments.credentials, announce=show) as users:
        user = _found(users, arguments)
        old = [] if overlap is None else [_ending(each, now + overlap) for each in user.keys]
        kept += [each for each in old if each.expires is not None and each.expires > now]
        users[arguments.name] = msgspec.structs.replace(user, keys=[*kept, key])


def _rotated(arguments: argparse.Namespace, key: AccessKey, kept: list[AccessKey]) -> str:
    """Until when the new key and those that are kept are valid."""
    until = max((each.expires for each in kept if each.expires is not None), default=None)
    end = "does not expire" if key.expires is None else f"is valid until {_time(key.expires)}"
    old_end = "are no longer valid" if until is None else f"are valid until {_time(until)}"
    return (
        f"{arguments.name} has a new key in {arguments.credentials}, which {end}. "
        f"Previous keys {old_end}."
    )


def _remove(arguments: argparse.Namespace) -> None:
    with changing_users(arguments.credentials) as users:
        _found(users, arguments)
        del users[arguments.name]
    print(
        f"{arguments.name} was removed from {arguments.credentials}; "
        "a running server lets them in until SIGHUP (kill -HUP PID)"
    )


def _list(arguments: argparse.Namespace) -> None:
    users = read_users(arguments.credentials).by_name
    if readable_by_others(arguments.credentials):
        print_error(
            f"warning: others may read the secrets in {arguments.credentials}: chmod 600 it"
        )
    rows = [
        [name, _access(user), ", ".join(map(_shown_key, user.keys)) or "none"]
        for name, user in users.items()
    ]
    print(aligned(["user", "access", "keys"], rows))


_ACTIONS: Final[dict[str, Callable[[argparse.Namespace], None]]] = {
    "add": _add,
    "list": _list,
    "remove": _remove,
    "rotate": _rotate,
}


def _found(users: dict[str, User], arguments: argparse.Namespace) -> User:
    if arguments.name not in users:
        known = ", ".join(users) or "none"
        raise UsageError(
            f"there is no user {arguments.name} in {arguments.credentials}; users: {known}"
        )
    return users[arguments.name]


def _ending(key: AccessKey, end: datetime) -> AccessKey:
    earliest = end if key.expires is None else min(end, key.expires)
    return msgspec.structs.replace(key, expires=earliest)


def _lifetime(text: str | None) -> timedelta | None:
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is not a time; write a number and s, m, h or d, such as 12h")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def _policy(file: str | None) -> dict[str, Any] | None:
    if file is None:
        return None
    check_regular(file)
    try:
        policy: dict[str, Any] = msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is not a policy in JSON: {error}") from None
    return policy


def _access(user: User) -> str:
    """A user's permissions in a few words."""
    does = "reads" if user.read_only else "reads and writes"
    where = "every table" if user.tables is None else " ".join(user.tables)
    limits = [] if user.actions is None else [f"only {' '.join(user.actions)}"]
    limits += [] if user.policy is None else ["as its policy allows"]
    return ", ".join([f"{does} {where}", *limits])


def _shown_key(key: AccessKey) -> str:
    end = "" if key.expires is None else f" (until {_time(key.expires)})"
    return key.access_key_id + end


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _print_pair(result: str, name: str, key: AccessKey) -> None:
    """Print a result and a new key: before the file is replaced, because nothing shows the key again if it cannot be printed."""
    token = key.session_token
    print(result, end=" ")
    print(
        _PAIR.format(
            name=name,
            id=key.access_key_id,
            secret=key.secret_access_key,
            token_line=f"aws_session_token = {token}\n" if token else "",
            token_export=f"export AWS_SESSION_TOKEN={token}\n" if token else "",
        ),
        end="",
        flush=True,
    )


USER: Final = Command(
    """\
Add, list and remove the users of `isotone serve --credentials FILE`, and give them new keys.

Without options a user may do everything. A new key is printed once, as a profile of AWS's tools and as environment
variables. A running server reloads the file on SIGHUP.""",
    examples="""
isotone user add ann
isotone user add reports --read-only --tables 'Orders*' Customers
isotone user add shop --policy shop-policy.json
isotone user add ci --expires 12h
isotone user list
isotone user rotate ann --overlap 1h
isotone user remove ann
isotone serve shop.db --credentials isotone-credentials.json
""",
    add_arguments=_arguments,
    run=_user,
)

DEFINITIONS: Final = {"user": USER}
