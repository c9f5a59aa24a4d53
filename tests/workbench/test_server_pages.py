"""The pages of a server elsewhere: over TLS and through proxies, as every other request."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.certificates import make_certificate, needs_openssl

import isotone
from isotone.server import running_server
from isotone.workbench.server_pages import server_page

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)


@needs_openssl
def test_a_certificate_and_a_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = make_certificate(tmp_path / "tls", "localhost")
    with (
        isotone.open() as database,
        running_server(database, tls_cert=cert, tls_key=key) as url,
    ):
        assert "certificate" in server_page(url, "metrics")["reason"]
        monkeypatch.setenv("AWS_CA_BUNDLE", str(cert))
        assert "isotone_requests_total" in server_page(url, "metrics")["text"]
        assert "looked_at" in server_page(url, "hotkeys")["text"]
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        assert server_page(url, "metrics")["text"] is None


def test_an_address_without_a_scheme_or_with_its_engine() -> None:
    with isotone.open() as database, running_server(database) as url:
        for target in (url.removeprefix("http://"), f"{url}?engine=isotone"):
            assert server_page(target, "metrics")["text"]


@pytest.mark.parametrize(
    "target", [":memory:", "shop.db", "dynamodb://eu-west-1", "http://user@host", "alternator://a"]
)
def test_a_target_that_is_no_server_of_isotone(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    expected = f"{target} is not a server of Isotone"
    assert server_page(target, "metrics") == {"text": None, "reason": expected}


def test_a_server_that_is_gone_and_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        "does not answer: cannot connect" in server_page("http://127.0.0.1:1", "metrics")["reason"]
    )
    monkeypatch.setenv("HTTPS_PROXY", "ftp://proxy")
    assert "HTTPS_PROXY" in server_page("https://127.0.0.1:1", "metrics")["reason"]
