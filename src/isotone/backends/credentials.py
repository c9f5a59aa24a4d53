"""Who signs the requests: access keys given, in the environment, or wherever AWS's tools find them.

A `CredentialSource` is asked before every signature, so that temporary keys are exchanged in time. With
botocore installed its own resolver is used, and with it profiles, roles, SSO, containers and instances
work as they do for the AWS CLI. Without it, keys come from the caller or from the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from isotone.errors import NoCredentials, UsageError


class Credentials(NamedTuple):
    """An access key; `token` belongs to temporary ones."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r}, …)"


CredentialSource = Callable[[], Credentials]

# What a server that verifies no signature is sent where nobody has named a key.
ANYBODY: Final = Credentials("isotone", "isotone")


def always(credentials: Credentials) -> CredentialSource:
    """A source of credentials that do not change."""
    return lambda: credentials


def from_environment(environment: Mapping[str, str] = os.environ) -> Credentials | None:
    """The keys in `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`."""
    access_key = environment.get("AWS_ACCESS_KEY_ID")
    secret_key = environment.get("AWS_SECRET_ACCESS_KEY")
    if not access_key or not secret_key:
        return None
    return Credentials(access_key, secret_key, environment.get("AWS_SESSION_TOKEN") or None)


def for_any_server() -> CredentialSource:
    """For a server of one's own: the environment's keys, or none in particular."""
    return always(from_environment() or ANYBODY)


def for_amazon(profile: str | None = None) -> CredentialSource:
    """For AWS itself, in the order in which its own tools look; raises `NoCredentials`."""
    given = from_environment() if profile is None else None
    if given is not None:
        return always(given)
    session = botocore_session(profile)
    found = None if session is None else _asked(session.get_credentials)
    if found is None:
        raise NoCredentials(
            "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, pass "
            "credentials=Credentials(…), or "
            + (
                "install botocore (pip install isotone[boto3]), which reads profiles, roles and SSO"
                if session is None
                else "run `aws configure`"
            )
        )
    return _from_botocore(found)


def region_of_environment(profile: str | None = None) -> str:
    """The region that AWS's tools would take here; raises `UsageError` where none is set."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if profile is not None or not region:
        session = botocore_session(profile)
        found = _asked(lambda: session.get_config_variable("region")) if session else None
        region = found or region
    if not region:
        raise UsageError("no AWS region is set; write it in the address: dynamodb://eu-west-1")
    return region


def botocore_session(profile: str | None) -> Any:
    """botocore's session, or None where it is not installed; a profile then is a `UsageError`."""
    try:
        import botocore.session
    except ImportError:
        if profile is not None:
            raise UsageError(
                f"profile {profile!r} needs botocore: pip install isotone[boto3]"
            ) from None
        return None
    return botocore.session.Session(profile=profile)


def _asked(ask: Callable[[], Any]) -> Any:
    """What botocore says; raises `NoCredentials` for a profile that is not there, or a login that has ended."""
    from botocore.exceptions import BotoCoreError

    try:
        return ask()
    except BotoCoreError as error:
        raise NoCredentials(f"AWS's own tools cannot tell: {error}") from error


def _from_botocore(found: Any) -> CredentialSource:
    def source() -> Credentials:
        # Temporary keys that are about to expire are renewed.
        frozen = _asked(found.get_frozen_credentials)
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    return source
