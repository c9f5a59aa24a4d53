from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isotone.backends import credentials
from isotone.backends.credentials import Credentials
from isotone.backends.endpoint import endpoint_of
from isotone.errors import NoCredentials, UsageError

VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_DYNAMODB",
)


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def without_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    assert credentials.from_environment() is None
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert credentials.for_amazon()() == Credentials("AKID", "secret", None)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert credentials.for_any_server()() == Credentials("AKID", "secret", "token")


def test_a_server_of_ones_own_needs_no_keys() -> None:
    assert credentials.for_any_server()() == credentials.PLACEHOLDER


def test_a_profile_is_read_as_aws_tools_do(tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    (tmp_path / "credentials").write_text(
        "[work]\naws_access_key_id = WORK\naws_secret_access_key = hush\n"
    )
    (tmp_path / "config").write_text("[profile work]\nregion = eu-north-1\n")
    endpoint = endpoint_of("dynamodb://?profile=work")
    assert endpoint.url == "https://dynamodb.eu-north-1.amazonaws.com"
    assert endpoint.region == "eu-north-1"
    assert endpoint.credentials() == Credentials("WORK", "hush", None)


def test_no_credentials_for_amazon(without_botocore: None) -> None:
    with pytest.raises(NoCredentials, match=r"AWS_ACCESS_KEY_ID.*pip install 'isotone\[boto3\]"):
        endpoint_of("dynamodb://eu-west-1")


def test_no_credentials_though_botocore_looked() -> None:
    pytest.importorskip("botocore")
    with pytest.raises(NoCredentials, match="aws configure"):
        endpoint_of("https://dynamodb.eu-west-1.amazonaws.com")


def test_a_profile_needs_botocore(without_botocore: None) -> None:
    with pytest.raises(UsageError, match="profile 'work' needs botocore"):
        endpoint_of("dynamodb://eu-west-1", profile="work")


def test_a_region_is_needed(without_botocore: None) -> None:
    with pytest.raises(UsageError, match="dynamodb://eu-west-1"):
        endpoint_of("dynamodb://", credentials=Credentials("a", "b"))


def test_a_secret_is_not_shown() -> None:
    assert "hush" not in repr(Credentials("AKID", "hush", "token"))


@pytest.mark.parametrize(
    ("url", "host", "port", "is_tls", "region"),
    [
        ("http://localhost:8000", "localhost", 8000, False, "us-east-1"),
        ("http://[::1]:8000/", "::1", 8000, False, "us-east-1"),
        ("https://example.com", "example.com", 443, True, "us-east-1"),
        ("dynamodb://eu-west-1", "dynamodb.eu-west-1.amazonaws.com", 443, True, "eu-west-1"),
        ("dynamodb://cn-north-1", "dynamodb.cn-north-1.amazonaws.com.cn", 443, True, "cn-north-1"),
        (
            "https://dynamodb.ap-south-1.amazonaws.com",
            "dynamodb.ap-south-1.amazonaws.com",
            443,
            True,
            "ap-south-1",
        ),
        (
            "https://123456789012.ddb.us-east-2.amazonaws.com",
            "123456789012.ddb.us-east-2.amazonaws.com",
            443,
            True,
            "us-east-2",
        ),
    ],
)
def test_addresses(url: str, host: str, port: int, is_tls: bool, region: str) -> None:
    endpoint = endpoint_of(url, credentials=Credentials("a", "b"))
    assert (endpoint.host, endpoint.port, endpoint.is_tls, endpoint.region) == (
        host,
        port,
        is_tls,
        region,
    )


def test_a_host_that_begins_like_amazon_is_not_amazon() -> None:
    endpoint = endpoint_of("https://dynamodb.eu-west-1.amazonaws.com.evil.example")
    assert not endpoint.is_amazon
    assert endpoint_of(
        "https://x.dynamodb.eu-west-1.amazonaws.com", credentials=Credentials("a", "b")
    ).is_amazon


def test_the_environment_may_name_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:4566")
    endpoint = endpoint_of("dynamodb://eu-west-1")
    assert (endpoint.host, endpoint.region) == ("localhost", "eu-west-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    assert endpoint_of("dynamodb://eu-west-1").host == "127.0.0.1"


def test_the_environment_may_name_the_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    assert endpoint_of("http://localhost:8000").region == "eu-north-1"
    assert endpoint_of("http://localhost:8000", region="eu-west-1").region == "eu-west-1"
    amazon = "https://dynamodb.ap-south-1.amazonaws.com"
    assert endpoint_of(amazon, credentials=Credentials("a", "b")).region == "ap-south-1"


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://host:port",
        "ftp://host",
        "http://host/path",
        "http://[::1:8000",
        "http://host:8000?region=eu-west-1",
        "http://key:secret@host:8000",
        "dynamodb://eu-west-1/table",
        "http://[::1]evil.com",
        "http://[::1]evil.com:8000",
        "http://evil.com#.localhost",
        "http://evil.com\\.localhost",
        "http://local host:8000",
    ],
)
def test_wrong_addresses(url: str) -> None:
    with pytest.raises(UsageError, match="is not a server's address") as raised:
        endpoint_of(url)
    assert "secret" not in str(raised.value)


def test_a_misspelt_profile_is_not_passed_over() -> None:
    with pytest.raises(UsageError, match=r"no parameter 'profil'; .*\?profile="):
        endpoint_of("dynamodb://eu-west-1?profil=work")


def test_a_profile_that_there_is_not() -> None:
    pytest.importorskip("botocore")
    with pytest.raises(NoCredentials, match="nobody"):
        endpoint_of("dynamodb://eu-west-1?profile=nobody")
