"""Parses `http://…` and `dynamodb://region`: host, region (AWS_REGION), AWS_ENDPOINT_URL, time-outs; TLS errors in words.

`dynamodb://region` is Amazon's service, unless the environment configures another endpoint for AWS's
tools.
"""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, replace
from typing import ClassVar, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from isotone.authority import host_in
from isotone.backends.amazon_hosts import AMAZON, amazon_host, is_on, refuse_dax, streams_host
from isotone.backends.credentials import (
    Credentials,
    CredentialSource,
    credential_source,
    default_region,
)
from isotone.backends.http_messages import HttpCodec
from isotone.backends.signing import Signer
from isotone.errors import ConnectionFailed, UsageError

_PORTS: Final = {"http": 80, "https": 443}
_PARAMETERS: Final = frozenset(("profile", "fips", "dualstack"))


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next bytes of an answer.

    >>> Timeouts(read=5)
    Timeouts(connect=5.0, read=5)
    """

    connect: float = 5.0
    read: float = 60.0


# OpenSSL's errors for an answer that is not TLS, by version.
_NO_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    url: str
    host: str
    port: int
    is_tls: bool

    hint: ClassVar[str] = ""

    @property
    def authority(self) -> str:
        """The Host header: the host, and the port unless it is the scheme's default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.port == _PORTS["https" if self.is_tls else "http"]:
            return host
        return f"{host}:{self.port}"

    def unreachable(self, error: OSError) -> ConnectionFailed:
        """The error for a connection that failed."""
        if isinstance(error, ssl.SSLError):
            why = _tls_reason(error, self.url)
            return ConnectionFailed(f"the TLS connection to {self.url} failed: {why}", sent=False)
        reason = "timed out" if isinstance(error, TimeoutError) else error.strerror or error
        return ConnectionFailed(f"cannot connect to {self.url} ({reason}){self.hint}", sent=False)


def _tls_reason(error: ssl.SSLError, url: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}; if the certificate is your own, set AWS_CA_BUNDLE to the file of its authority"
    if error.reason in _NO_TLS:
        return f"there is no TLS at this port; write http://{url.removeprefix('https://')}"
    return str(error)


def closed_early(url: str) -> str:
    """The message for a server that closes a connection before it answers."""
    text = f"{url} closed the connection without an answer"
    if url.startswith("http://"):
        text += f"; if it uses TLS, write https://{url.removeprefix('http://')}"
    return text


@dataclass(frozen=True, slots=True)
class Endpoint(Address):
    """The address of a DynamoDB server, with the credentials and region that sign its requests."""

    region: str
    credentials: CredentialSource

    hint: ClassVar[str] = "; `isotone serve` starts a server"

    @property
    def is_amazon(self) -> bool:
        """Whether it is Amazon's service, by its host."""
        return AMAZON.search(self.host) is not None

    def codec(self) -> HttpCodec:
        """The encoder of requests and decoder of answers for the endpoint."""
        host = self.authority
        signer = Signer(self.credentials, self.region, host)
        # Compression saves time over a network, but not on one machine.
        return HttpCodec(host, signer, compressed=self.is_tls)

    @property
    def of_streams(self) -> Endpoint:
        """The endpoint of DynamoDB Streams: a separate host at Amazon, the same one elsewhere."""
        if AMAZON.fullmatch(self.host) is None:
            return self
        url = (
            os.environ.get("AWS_ENDPOINT_URL_DYNAMODB_STREAMS")
            or f"https://{streams_host(self.host)}"
        )
        parts = _parts_of(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise _bad_address(url)
        port = parts.port or _PORTS[parts.scheme]
        return replace(
            self, url=url, host=parts.hostname, port=port, is_tls=parts.scheme == "https"
        )


def endpoint_of(
    url: str,
    *,
    region: str | None = None,
    profile: str | None = None,
    credentials: Credentials | CredentialSource | None = None,
) -> Endpoint:
    """The endpoint of `http://…`, `https://…` or `dynamodb://region?profile=…&fips=true&dualstack=true`.

    Raises `UsageError` for any other address, and for AWS without a region or credentials.
    """
    parts = _parts_of(url)
    if parts.scheme == "dynamodb":
        parameters = _parameters(parts)
        profile = profile or parameters.get("profile")
        region = region or parts.hostname or default_region(profile)
        wanted = {name: is_on(name, parameters) for name in ("fips", "dualstack")}
        url = _url_of_environment() or f"https://{amazon_host(region, **wanted)}"
        parts = _parts_of(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query:
        raise _bad_address(url)
    amazon = AMAZON.search(parts.hostname)
    return Endpoint(
        url=url,
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        is_tls=parts.scheme == "https",
        region=region or (amazon[1] if amazon else local_region()),
        credentials=credential_source(credentials, profile, is_amazon=amazon is not None),
    )


def _parts_of(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        refuse_dax(parts.scheme, parts.hostname)
        parts.port  # noqa: B018 - raises if it is not a number
    except UsageError:
        raise
    except ValueError:
        raise _bad_address(url) from None
    if parts.path not in ("", "/") or parts.fragment or host_in(parts.netloc) is None:
        raise _bad_address(url)
    return parts


def _parameters(parts: SplitResult) -> dict[str, str]:
    parameters = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    for name in parameters.keys() - _PARAMETERS:
        raise UsageError(
            f"an address has no parameter {name!r}; write, for example, dynamodb://eu-west-1?profile=work, "
            "?fips=true or ?dualstack=true"
        )
    return parameters


def _url_of_environment() -> str | None:
    """The endpoint that the environment configures for AWS's tools."""
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return None
    return os.environ.get("AWS_ENDPOINT_URL_DYNAMODB") or os.environ.get("AWS_ENDPOINT_URL")


def local_region() -> str:
    """The region for other servers. It matters, because DynamoDB Local separates the tables of regions."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _bad_address(url: str) -> UsageError:
    shown = re.sub("//.*@", "//…@", url)  # the part before @ may be a secret
    return UsageError(
        f"{shown!r} is not a server's address; write, for example, http://localhost:8000, "
        "https://example.com or dynamodb://eu-west-1"
    )
