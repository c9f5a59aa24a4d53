"""The keys that sign requests: the caller's, AWS_ACCESS_KEY_ID, or botocore's (profiles, SSO, roles); `NoCredentials`.

A `CredentialSource` is called for every signature, so temporary keys are renewed in time. If botocore is installed, its
resolver is used: profiles, roles, SSO, containers and instances work as they do for the AWS CLI. Without it, keys come
from the caller or from the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from isotone.errors import NoCredentials, UsageError


class Credentials(NamedTuple):
    """An access key; a temporary one has a `token`.

    >>> isotone.Credentials("AKIA...", "secret").token is None
    True
    """

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r}, …)"


CredentialSource = Callable[[], Credentials]

# Sent to servers other than Amazon's if no key is set: most do not verify signatures.
PLACEHOLDER: Final = Credentials("isotone", "isotone")


def fixed(credentials: Credentials) -> CredentialSource:
    """A source that always returns the same credentials."""
    return lambda: credentials


def from_environment() -> Credentials | None:
    """The keys in `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`."""
    access_key = os.environ.get("AWS_ACCESS_KEY_ID")
    secret_key = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if not access_key or not secret_key:
        return None
    return Credentials(access_key, secret_key, os.environ.get("AWS_SESSION_TOKEN") or None)


def credential_source(
    given: Credentials | CredentialSource | None, profile: str | None, *, is_amazon: bool
) -> CredentialSource:
    """The caller's credentials, or else those that are found for the server."""
    if isinstance(given, Credentials):
        return fixed(given)
    if given is not None:
        return given
    return for_amazon(profile) if is_amazon or profile is not None else for_any_server()


def for_any_server() -> CredentialSource:
    """Credentials for a server other than Amazon's: the environment's, or a placeholder."""
    return fixed(from_environment() or PLACEHOLDER)


def for_amazon(profile: str | None = None) -> CredentialSource:
    """Credentials for AWS, resolved in the order of AWS's own tools; raises `NoCredentials`."""
    given = from_environment() if profile is None else None
    if given is not None:
        return fixed(given)
    session = botocore_session(profile)
    resolved = None if session is None else _resolve(session.get_credentials)
    if resolved is None:
        raise NoCredentials(
            "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, pass "
            "credentials=Credentials(…), or "
            + (
                "install botocore (pip install 'isotone[boto3]'), which reads profiles, roles and SSO"
                if session is None
                else "run `aws configure`"
            )
        )
    return _from_botocore(resolved)


def default_region(profile: str | None = None) -> str:
    """The region that AWS's tools would use; raises `UsageError` if none is set."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if profile is not None or not region:
        session = botocore_session(profile)
        if session is not None:
            region = _resolve(lambda: session.get_config_variable("region")) or region
    if not region:
        raise UsageError("no AWS region is set; name it in the address: dynamodb://eu-west-1")
    return region


def botocore_session(profile: str | None) -> Any:
    """botocore's session, or None if it is not installed; raises `UsageError` if a profile needs it."""
    try:
        import botocore.session
    except ImportError:
        if profile is not None:
            raise UsageError(
                f"profile {profile!r} needs botocore: pip install 'isotone[boto3]'"
            ) from None
        return None
    return botocore.session.Session(profile=profile)


def _resolve(ask: Callable[[], Any]) -> Any:
    """Ask botocore; raises `NoCredentials` for an unknown profile or an expired login."""
    from botocore.exceptions import BotoCoreError

    try:
        return ask()
    except BotoCoreError as error:
        raise NoCredentials(f"botocore could not resolve the AWS configuration: {error}") from error


def _from_botocore(resolved: Any) -> CredentialSource:
    def source() -> Credentials:
        # botocore renews temporary keys that are about to expire.
        frozen = _resolve(resolved.get_frozen_credentials)
        return Credentials(frozen.access_key, frozen.secret_key, frozen.token)

    return source
