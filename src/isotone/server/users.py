"""The credentials file (--credentials): users, access keys, session tokens, permissions; `isotone user` writes it.

    {"users": {"ann":  {"keys": [{"access_key_id": "…", "secret_access_key": "…"}]},
               "shop": {"keys": […], "read_only": true, "tables": ["Orders*"]}}}

The secrets are in plain text, because verifying a signature needs them. So only its owner should be able to read the file.
It is replaced as a whole: a server never reads half of it.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from isotone.errors import UsageError
from isotone.output_paths import OutputPath, check_output, check_regular, errors_name

_NAME: Final = re.compile(r"[A-Za-z0-9_+=,.@-]{1,64}")  # IAM's rule
_KEY_ID: Final = re.compile(r"[A-Za-z0-9_.-]{3,128}")
_ID_LEAD: Final = "ISOT"  # not AWS's AKIA, so that it is not mistaken for the key of an AWS account
_ID_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_SECRET_BYTES: Final = 30  # 40 characters, as AWS's
_TOKEN_BYTES: Final = 96
_OWNER_ONLY: Final = 0o600


class AccessKey(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """An access key of a user. One that expires may have a session token, which requests must then carry."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    created: datetime | None = None
    expires: datetime | None = None

    def __repr__(self) -> str:
        return f"AccessKey({self.access_key_id!r}, …)"


class User(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A user in the file: the keys, and the limits of the permissions. Each limit that is given narrows them."""

    keys: list[AccessKey] = []
    read_only: bool = False
    tables: list[str] | None = None
    actions: list[str] | None = None
    policy: dict[str, Any] | None = None


class Login(NamedTuple):
    """A user, and the access key of a request."""

    name: str
    user: User
    key: AccessKey


class _UsersFile(msgspec.Struct, forbid_unknown_fields=True):
    users: dict[str, User]


class Users:
    """All users, by name, and their keys."""

    def __init__(self, users: Mapping[str, User] | None = None) -> None:
        self.by_name: dict[str, User] = dict(users or {})
        self._logins: dict[str, Login] = {}
        for name, user in self.by_name.items():
            for key in user.keys:
                if key.access_key_id in self._logins:
                    raise UsageError(
                        f"the file has the access key {key.access_key_id} twice; remove one"
                    )
                self._logins[key.access_key_id] = Login(name, user, key)

    def find_key(self, access_key_id: str) -> Login | None:
        """The user and the key of an access key id; None if there is none."""
        return self._logins.get(access_key_id)


def read_users(path: str | PathLike[str]) -> Users:
    """The users in a credentials file. Raises `UsageError` if it is absent or invalid."""
    file = Path(path)
    check_regular(file)
    try:
        document = file.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no credentials file {file}; isotone user add NAME --credentials {file} makes one"
        ) from None
    try:
        users = msgspec.json.decode(document, type=_UsersFile).users
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{file} is not a credentials file: {error}") from None
    for name, user in users.items():
        _check(file, name, user)
    return Users(users)


def _check(file: Path, name: str, user: User) -> None:
    check_name(name)
    for key in user.keys:
        if not _KEY_ID.fullmatch(key.access_key_id) or not key.secret_access_key:
            raise UsageError(
                f"{file}: {key.access_key_id!r} of {name} is not an access key with a secret"
            )
        if key.expires is not None and key.expires.tzinfo is None:
            raise UsageError(
                f"{file}: the key {key.access_key_id} expires at {key.expires}, which has no time zone; add Z for UTC"
            )


def check_name(name: str) -> None:
    """Raise `UsageError` for a name that IAM does not allow for a user."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a user's name; write at most 64 letters, digits and _+=,.@-"
        )


@contextmanager
def changing_users(
    path: str | PathLike[str], announce: Callable[[], None] | None = None
) -> Iterator[dict[str, User]]:
    """Change the users in a credentials file: the block changes the dict, which is empty if there is no file yet.

    Other commands cannot change the file meanwhile. It is replaced as a whole, and only its owner can read it. If the path is
    a symbolic link, its target is replaced. `announce` is called when the new file is on the disk, and before it
    replaces the old one: if it raises, nothing has changed. Raises `UsageError`.
    """
    check_output(OutputPath("--credentials", path, is_appended=True, needs_folder=False))
    file = Path(os.path.realpath(path)) if Path(path).is_symlink() else Path(path)
    new = file.with_name(file.name + ".new")
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
    except FileExistsError:
        raise UsageError(f"another command is changing {file}; if none is, remove {new}") from None
    try:
        users = read_users(file).by_name if file.exists() else {}
        yield users
        document = msgspec.json.encode(_UsersFile(Users(users).by_name))
        with errors_name(path), new.open("wb") as writing:
            writing.write(msgspec.json.format(document, indent=2) + b"\n")
            writing.flush()
            os.fsync(writing.fileno())
        if announce is not None:
            announce()
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def readable_by_others(path: str | PathLike[str]) -> bool:
    """Whether users of the machine may read the file who need not.

    A file of another owner is read through its group, which is then meant: so Kubernetes mounts a secret (root, 0440).
    """
    if sys.platform == "win32":
        return False
    file, user = Path(path).stat(), os.geteuid()
    needs_group = user not in (0, file.st_uid)
    return bool(file.st_mode & (stat.S_IRWXO if needs_group else stat.S_IRWXG | stat.S_IRWXO))


def new_key(lifetime: timedelta | None = None, *, now: datetime | None = None) -> AccessKey:
    """A new random access key; one with a lifetime has a session token."""
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    return AccessKey(
        access_key_id=_ID_LEAD + "".join(secrets.choice(_ID_ALPHABET) for _ in range(16)),
        secret_access_key=secrets.token_urlsafe(_SECRET_BYTES),
        session_token=None if lifetime is None else secrets.token_urlsafe(_TOKEN_BYTES),
        created=now,
        expires=None if lifetime is None else now + lifetime,
    )
