"""Where the requests of DynamoDB Streams go: a host of its own at Amazon, the same one elsewhere."""

from __future__ import annotations

import pytest

from isotone.backends.credentials import Credentials
from isotone.backends.endpoint import endpoint_of
from isotone.errors import UsageError

ANY = Credentials("any", "any")


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("dynamodb://eu-west-1", "streams.dynamodb.eu-west-1.amazonaws.com"),
        ("dynamodb://cn-north-1", "streams.dynamodb.cn-north-1.amazonaws.com.cn"),
        (
            "https://123456789012.ddb.us-east-1.amazonaws.com",
            "streams.dynamodb.us-east-1.amazonaws.com",
        ),
        (
            "https://dynamodb-fips.us-east-1.amazonaws.com",
            "streams.dynamodb-fips.us-east-1.amazonaws.com",
        ),
    ],
)
def test_amazon_has_a_host_for_streams(
    address: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", raising=False)
    endpoint = endpoint_of(address, credentials=ANY)
    assert (endpoint.of_streams.host, endpoint.of_streams.port) == (host, 443)
    assert endpoint.of_streams.region == endpoint.region


def test_the_environment_may_name_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "http://127.0.0.1:8001")
    streams = endpoint_of("dynamodb://eu-west-1", credentials=ANY).of_streams
    assert (streams.host, streams.port, streams.is_tls) == ("127.0.0.1", 8001, False)


@pytest.mark.parametrize("url", ["streams.internal:8001", "ftp://streams.internal", "http://"])
def test_a_wrong_one_in_the_environment_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", url)
    endpoint = endpoint_of("dynamodb://eu-west-1", credentials=ANY)
    with pytest.raises(UsageError, match="is not a server's address"):
        endpoint.of_streams  # noqa: B018 - reading it is the test


def test_elsewhere_streams_are_at_the_same_address() -> None:
    endpoint = endpoint_of("http://localhost:8000")
    assert endpoint.of_streams is endpoint
