"""Addresses of accounts, the credentials for them, and a machine without the extra."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from isotone.backends.azure_table import AsyncAzureTable, AzureTable
from isotone.backends.azure_table.account import Account, account_of, credential_of
from isotone.backends.opening import open_async_backend, open_backend
from isotone.errors import NoCredentials, UsageError

SHOP = Account("https://shop.table.core.windows.net", "shop", is_local=False)
SETTINGS = ("CONNECTION_STRING", "KEY", "SAS_TOKEN", "ACCOUNT")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


@pytest.mark.parametrize(
    ("address", "account"),
    [
        ("azure-table://shop", SHOP),
        (
            "azure-table://shop.table.core.chinacloudapi.cn",
            Account("https://shop.table.core.chinacloudapi.cn", "shop", is_local=False),
        ),
        (
            "azure-table://127.0.0.1:10102/devstoreaccount1",
            Account("http://127.0.0.1:10102/devstoreaccount1", "devstoreaccount1", is_local=True),
        ),
        (
            "azure-table://localhost",
            Account("http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", is_local=True),
        ),
        (
            "azure-table://azurite.internal:8443/shop",
            Account("https://azurite.internal:8443/shop", "shop", is_local=False),
        ),
    ],
)
def test_the_account_of_an_address(address: str, account: Account) -> None:
    assert account_of(address) == account


@pytest.mark.parametrize(
    "address",
    [
        "azure-table://",
        "azure-table://sh_op",
        "azure-table://shop/orders",
        "azure-table://shop:443",
        "azure-table://shop?x=1",
        "azure-table://shop:x",
        "azure-table://me:secret@shop",
        "azure-table://[::1]evil.com",
        "azure-table://evil.com#.localhost",
    ],
)
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(UsageError, match=r"write azure-table://ACCOUNT") as caught:
        account_of(address)
    assert "secret" not in str(caught.value)


def of_shop(**settings: str) -> Any:
    environment = {f"AZURE_STORAGE_{name}": value for name, value in settings.items()}
    return credential_of(SHOP, environment=environment)


def test_credentials_of_a_connection_string() -> None:
    text = "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=a2V5==;EndpointSuffix=x"
    assert of_shop(CONNECTION_STRING=text).named_key == ("shop", "a2V5==")
    text = "AccountName=shop;SharedAccessSignature=sv=1&sig=2"
    assert of_shop(CONNECTION_STRING=text).signature == "sv=1&sig=2"


def test_credentials_of_the_variables_of_azures_tools() -> None:
    assert of_shop(KEY="a2V5").named_key == ("shop", "a2V5")
    assert of_shop(ACCOUNT="shop", SAS_TOKEN="sig=2").signature == "sig=2"


def test_the_emulators_key_is_for_this_machine() -> None:
    local = account_of("azure-table://127.0.0.1")
    assert credential_of(local, environment={}).named_key.name == "devstoreaccount1"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ACCOUNT": "other", "KEY": "a2V5"},
        {"CONNECTION_STRING": "AccountName=other;AccountKey=x"},
    ],
)
def test_there_are_no_credentials(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(NoCredentials, match="'shop'; set AZURE_STORAGE_CONNECTION_STRING"):
        of_shop(**settings)


@pytest.mark.parametrize("awaited", [False, True])
def test_azure_identity_is_asked_last(awaited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Identity:
        DefaultAzureCredential = staticmethod(lambda: "default")

    name = "azure.identity.aio" if awaited else "azure.identity"
    monkeypatch.setitem(sys.modules, name, Identity)
    assert credential_of(SHOP, awaited=awaited, environment={}) == "default"


@pytest.mark.parametrize("opened", [AzureTable, AsyncAzureTable])
def test_without_the_extra(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.data.tables", None)
    monkeypatch.setitem(sys.modules, "azure.data.tables.aio", None)
    with pytest.raises(UsageError, match=r"pip install 'isotone\[azure\]'"):
        opened("azure-table://127.0.0.1")


def test_an_address_is_opened() -> None:
    opened = open_backend("azure-table://127.0.0.1")
    assert isinstance(opened.backend, AzureTable)
    opened.close()
    awaited = open_async_backend("azure-table://127.0.0.1")
    assert isinstance(awaited.backend, AsyncAzureTable)
    awaited.close()


@pytest.mark.parametrize("open_it", [open_backend, open_async_backend])
def test_options_of_other_engines_are_refused(open_it: Any) -> None:
    with pytest.raises(UsageError, match="region= is not for Azure"):
        open_it("azure-table://127.0.0.1", region="eu-west-1")
