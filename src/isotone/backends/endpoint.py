"""Where a remote engine is, and how to speak to it."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from isotone.backends import credentials as keys
from isotone.backends.credentials import Credentials, CredentialSource
from isotone.backends.exchange import Conversation
from isotone.backends.signing import Signer
from isotone.errors import ConnectionFailed, UsageError

_PORTS: Final = {"http": 80, "https": 443}
_AMAZON: Final = re.compile(
    r"(?:dynamodb|[\w-]+\.ddb)[\w-]*\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
_SUFFIXES: Final = {"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov"}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next part of an answer."""

    connect: float = 5.0
    read: float = 60.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address with the credentials and the region that its requests are signed with."""

    url: str
    host: str
    port: int
    is_tls: bool
    region: str
    credentials: CredentialSource

    def conversation(self) -> Conversation:
        """How to make and read messages for the endpoint."""
        usual = self.port == _PORTS["https" if self.is_tls else "http"]
        bracketed = f"[{self.host}]" if ":" in self.host else self.host
        host = bracketed if usual else f"{bracketed}:{self.port}"
        signer = Signer(self.credentials, self.region, host)
        # Over a network, bytes cost more than the time to unpack them; within the machine they do not.
        return Conversation(host, signer, compressed=self.is_tls)

    @property
    def of_streams(self) -> Endpoint:
        """Where DynamoDB Streams is: a host of its own at Amazon, the same one everywhere else."""
        if _AMAZON.fullmatch(self.host) is None:
            return self
        url = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB_STREAMS") or _streams_url(self.host)
        parts = urlsplit(url)
        port = parts.port or _PORTS[parts.scheme]
        host = parts.hostname or self.host
        return replace(self, url=url, host=host, port=port, is_tls=parts.scheme == "https")

    def unreachable(self, error: OSError) -> ConnectionFailed:
        """What to raise where no connection came about."""
        if isinstance(error, ssl.SSLError):
            return ConnectionFailed(f"there is no safe connection to {self.url}: {error}")
        reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or error
        return ConnectionFailed(
            f"nothing answers at {self.url} ({reason}); `isotone serve` starts a server"
        )


def endpoint_of(
    url: str,
    *,
    region: str | None = None,
    profile: str | None = None,
    credentials: Credentials | CredentialSource | None = None,
) -> Endpoint:
    """The endpoint of `http://…`, `https://…` or `dynamodb://region?profile=…`.

    Raises `UsageError` for another address, and where there is no region or no credentials for AWS.
    """
    parts = _parts_of(url)
    if parts.scheme == "dynamodb":
        profile = profile or _profile_in(parts)
        region = region or parts.hostname or keys.region_of_environment(profile)
        url = _url_of_environment() or _amazon_url(region)
        parts = _parts_of(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query:
        raise _not_an_address(url)
    amazon = _AMAZON.search(parts.hostname)
    return Endpoint(
        url=url,
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        is_tls=parts.scheme == "https",
        region=region or (amazon[1] if amazon else _usual_region()),
        credentials=_source(credentials, profile, is_amazon=amazon is not None),
    )


def _parts_of(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - looks whether it is a number
    except ValueError:
        raise _not_an_address(url) from None
    if parts.path not in ("", "/") or parts.fragment or "@" in parts.netloc:
        raise _not_an_address(url)
    return parts


def _profile_in(parts: SplitResult) -> str | None:
    said = parse_qs(parts.query)
    for name in said.keys() - {"profile"}:
        raise UsageError(
            f"{name} is nothing that an address says; it looks like dynamodb://eu-west-1?profile=work"
        )
    return said.get("profile", [None])[0]


def _url_of_environment() -> str | None:
    """The endpoint that AWS's tools would take instead of Amazon's own."""
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or os.environ.get("AWS_ENDPOINT_URL")


def _usual_region() -> str:
    """The region for a server of one's own: DynamoDB Local keeps the tables of each apart."""
    set_ = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return set_ or "us-east-1"


def _amazon_url(region: str) -> str:
    suffix = next((each for start, each in _SUFFIXES.items() if region.startswith(start)), None)
    return f"https://dynamodb.{region}.{suffix or 'amazonaws.com'}"


def _streams_url(host: str) -> str:
    """`dynamodb.eu-west-1.…` is `streams.dynamodb.eu-west-1.…`, whichever account's own name it has."""
    service, _, rest = host.partition(".")
    if not service.startswith("dynamodb"):
        service, rest = "dynamodb", rest.removeprefix("ddb.")
    return f"https://streams.{service}.{rest}"


def _source(
    given: Credentials | CredentialSource | None, profile: str | None, *, is_amazon: bool
) -> CredentialSource:
    if isinstance(given, Credentials):
        return keys.always(given)
    if given is not None:
        return given
    if is_amazon or profile is not None:
        return keys.for_amazon(profile)
    return keys.for_any_server()


def _not_an_address(url: str) -> UsageError:
    shown = re.sub("//.*@", "//…@", url)  # what stands before it may be a secret
    return UsageError(
        f"{shown!r} is no address of a server; it looks like http://localhost:8000, "
        "https://example.com or dynamodb://eu-west-1"
    )
