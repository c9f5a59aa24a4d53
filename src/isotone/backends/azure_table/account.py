"""Azure accounts: addresses `azure-table://…`, AZURE_STORAGE_CONNECTION_STRING and the like, keys and tokens.

    azure-table://ACCOUNT                                 https://ACCOUNT.table.core.windows.net
    azure-table://HOST[:PORT][/ACCOUNT]                   https, at a host with a dot in its name
    azure-table://127.0.0.1:10002/devstoreaccount1        the emulator: http, on this machine

The credentials are, in this order: `AZURE_STORAGE_CONNECTION_STRING`, if it is of this account; `AZURE_STORAGE_KEY` or
`AZURE_STORAGE_SAS_TOKEN`, as for Azure's own tools; the emulator's well-known key on this machine; those that
`azure-identity` finds, if it is installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from isotone.authority import host_in
from isotone.errors import NoCredentials, UsageError

SCHEME: Final = "azure-table"
_LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_ACCOUNT: Final = re.compile("[a-z0-9]{3,24}")
_EMULATOR: Final = "devstoreaccount1"
# The key of every emulator, which Microsoft publishes.
_EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_PATH: Final = re.compile("/?([a-z0-9]*)/?")


class Account(NamedTuple):
    """The endpoint of an account, its name, and whether it is an emulator's."""

    endpoint: str
    name: str
    is_local: bool


def account_of(address: str) -> Account:
    """The account of an address. Raises `UsageError` for an address that is not one."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _bad_address(address) from None
    path = _PATH.fullmatch(parts.path)
    if (
        parts.scheme != SCHEME
        or path is None
        or parts.query
        or parts.fragment
        or host_in(parts.netloc) is None
    ):
        raise _bad_address(address)
    if host in _LOOPBACK:
        # At any other host than 127.0.0.1 the SDK mistakes the emulator for Cosmos DB.
        name = path[1] or _EMULATOR
        return Account(f"http://127.0.0.1:{port or 10002}/{name}", name, is_local=True)
    if "." in host:
        place = host if port is None else f"{host}:{port}"
        name = path[1] or host.partition(".")[0]
        return Account(f"https://{place}/{path[1]}".rstrip("/"), name, is_local=False)
    if not _ACCOUNT.fullmatch(host) or port is not None or path[1]:
        raise _bad_address(address)
    return Account(f"https://{host}.table.core.windows.net", host, is_local=False)


def credential_of(
    account: Account, *, awaited: bool = False, environment: Mapping[str, str] = os.environ
) -> Any:
    """The credential of an account, for a sync or (`awaited`) an async client. Raises `NoCredentials` without one."""
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    settings = _connection(environment.get("AZURE_STORAGE_CONNECTION_STRING", ""))
    if settings.get("accountname") == account.name:
        if key := settings.get("accountkey"):
            return AzureNamedKeyCredential(account.name, key)
        if token := settings.get("sharedaccesssignature"):
            return AzureSasCredential(token)
    if environment.get("AZURE_STORAGE_ACCOUNT", account.name) == account.name:
        if key := environment.get("AZURE_STORAGE_KEY"):
            return AzureNamedKeyCredential(account.name, key)
        if token := environment.get("AZURE_STORAGE_SAS_TOKEN"):
            return AzureSasCredential(token)
    if account.is_local and account.name == _EMULATOR:
        return AzureNamedKeyCredential(account.name, _EMULATOR_KEY)
    try:
        identity = import_module("azure.identity.aio" if awaited else "azure.identity")
    except ImportError:
        raise NoCredentials(
            f"there are no credentials for the Azure account {account.name!r}; set AZURE_STORAGE_CONNECTION_STRING or "
            "AZURE_STORAGE_KEY, or install azure-identity"
        ) from None
    return identity.DefaultAzureCredential()


def _connection(text: str) -> dict[str, str]:
    """The settings of a connection string, by their names in lower case."""
    pairs = (part.partition("=") for part in text.split(";") if part)
    return {name.strip().lower(): value for name, _, value in pairs}


def _bad_address(address: str) -> UsageError:
    shown = re.sub("//.*@", "//…@", address)  # the part before @ may be a secret
    return UsageError(
        f"{shown!r} is not an address of Azure Table storage; write azure-table://ACCOUNT, or "
        f"azure-table://127.0.0.1:10002/{_EMULATOR} for the emulator"
    )
