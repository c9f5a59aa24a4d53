"""Amazon's service: its hosts as botocore knows them, proxies, certificates, keys that are renewed; DAX is refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.backends.scripted import answer, scripted_server

import isotone
from isotone.backends import credentials
from isotone.backends.amazon_hosts import amazon_host, streams_host
from isotone.backends.async_remote import AsyncRemote
from isotone.backends.endpoint import endpoint_of
from isotone.backends.remote import Remote
from isotone.backends.request_retries import Retries
from isotone.errors import ConnectionFailed, UsageError

KEYS = isotone.Credentials("any", "any")
FOUND = {"TableNames": ["t"]}


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"),
        *("AWS_CA_BUNDLE", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT"),
        *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_DYNAMODB_STREAMS"),
    ):
        monkeypatch.delenv(name, raising=False)


# Hosts


@cache
def botocore_session() -> Any:
    """One session, which reads what botocore knows of services once."""
    import botocore.session

    session = botocore.session.Session()
    session.set_credentials("a", "b")
    return session


def of_botocore(service: str, region: str, fips: bool, dualstack: bool) -> str:
    from botocore.config import Config

    config = Config(
        use_fips_endpoint=fips,
        use_dualstack_endpoint=dualstack,
        account_id_endpoint_mode="disabled",
    )
    client = botocore_session().create_client(service, region_name=region, config=config)
    name = "ListTables" if service == "dynamodb" else "ListStreams"
    operation = client.meta.service_model.operation_model(name)
    resolved = client._ruleset_resolver.construct_endpoint(operation, {}, {})
    return str(resolved.url.removeprefix("https://"))


@pytest.mark.parametrize("fips", [False, True])
@pytest.mark.parametrize("dualstack", [False, True])
@pytest.mark.parametrize(
    "region",
    [
        "eu-west-1",
        "cn-north-1",
        "us-gov-west-1",
        "us-iso-east-1",
        "us-isob-east-1",
        "us-isof-south-1",
        "eu-isoe-west-1",
        "eusc-de-east-1",
    ],
)
def test_hosts_are_those_of_botocore(region: str, fips: bool, dualstack: bool) -> None:
    if dualstack and region.startswith(("us-isof", "eu-isoe", "eusc")):
        with pytest.raises(UsageError, match="has no dual-stack endpoint; leave out dualstack"):
            amazon_host(region, dualstack=True)
        return
    host = amazon_host(region, fips=fips, dualstack=dualstack)
    assert host == of_botocore("dynamodb", region, fips, dualstack)
    assert streams_host(host) == of_botocore("dynamodbstreams", region, fips, dualstack)
    endpoint = endpoint_of(f"https://{host}", credentials=KEYS)
    assert (endpoint.is_amazon, endpoint.region) == (True, region)


def test_the_address_or_the_environment_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def host(url: str) -> str:
        return endpoint_of(url, credentials=KEYS).host

    assert host("dynamodb://eu-west-1?fips=true") == "dynamodb-fips.eu-west-1.amazonaws.com"
    assert host("dynamodb://eu-west-1?dualstack=true") == "dynamodb.eu-west-1.api.aws"
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    monkeypatch.setenv("AWS_USE_DUALSTACK_ENDPOINT", "True")
    assert host("dynamodb://eu-west-1") == "dynamodb-fips.eu-west-1.api.aws"
    assert host("dynamodb://eu-west-1?fips=false") == "dynamodb.eu-west-1.api.aws"
    with pytest.raises(UsageError, match="fips='yes' is not valid; write true or false"):
        host("dynamodb://eu-west-1?fips=yes")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:4566")
    assert host("dynamodb://eu-west-1") == "localhost"


@pytest.mark.parametrize(
    "url",
    [
        "dax://my.abc.dax-clusters.eu-west-1.amazonaws.com:8111",
        "daxs://my.abc.dax-clusters.eu-west-1.amazonaws.com",
        "https://my.abc.dax-clusters.eu-west-1.amazonaws.com",
    ],
)
def test_dax_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(UsageError, match=r"DAX .* does not speak; .* dynamodb://region"):
        isotone.connect(url)


# Proxies and certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


@pytest.fixture
def tls(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS, which a client trusts by `AWS_CA_BUNDLE`."""
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate[0]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@contextlib.contextmanager
def proxy(status: bytes = b"200 Connected") -> Iterator[tuple[str, list[bytes]]]:
    """A proxy that opens tunnels, or answers with another status: its address, and the requests it got."""
    heads: list[bytes] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def talk(client: socket.socket) -> None:
        with client:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            heads.append(head)
            client.sendall(b"HTTP/1.1 %b\r\nX: y\r\n\r\n" % status)
            if not status.startswith(b"200"):
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=talk, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", heads
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def ask(url: str, kind: str) -> dict[str, Any]:
    endpoint = endpoint_of(url, credentials=KEYS)
    if kind == "sync":
        with Remote(endpoint, retries=Retries.none()) as remote:
            return remote.execute("ListTables", {})

    async def main() -> dict[str, Any]:
        remote = AsyncRemote(endpoint, retries=Retries.none())
        try:
            return await remote.execute("ListTables", {})
        finally:
            remote.close()

    return asyncio.run(main())


of_both_kinds = pytest.mark.parametrize("kind", ["sync", "async"])


@of_both_kinds
def test_requests_go_through_a_tunnel(
    kind: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy() as (address, heads), scripted_server(answer(FOUND), tls=tls) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://ann:p%40ss@{address}")
        assert ask(server.url, kind) == FOUND
    (head,) = heads
    assert head.startswith(
        b"CONNECT localhost:%d HTTP/1.1\r\n" % int(server.url.rpartition(":")[2])
    )
    assert b"Proxy-Authorization: Basic YW5uOnBAc3M=\r\n" in head
    assert b"ListTables" in server.requests[0]


@of_both_kinds
def test_no_proxy_names_hosts_that_are_reached_directly(
    kind: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy() as (address, heads), scripted_server(answer(FOUND), tls=tls) as server:
        monkeypatch.setenv("HTTPS_PROXY", address)
        monkeypatch.setenv("NO_PROXY", "example.com,localhost")
        assert ask(server.url, kind) == FOUND
    assert heads == []


@of_both_kinds
def test_without_tls_no_proxy_is_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "127.0.0.1:1")
    with scripted_server(answer(FOUND)) as server:
        assert ask(server.url, kind) == FOUND


@of_both_kinds
def test_a_proxy_that_refuses_says_so(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with proxy(b"407 Proxy Authentication Required") as (address, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://{address}")
        with pytest.raises(
            ConnectionFailed, match=r"refused .* localhost:9 \(407 Proxy A"
        ) as error:
            ask("https://localhost:9", kind)
    assert not error.value.sent


@of_both_kinds
def test_each_address_of_a_proxy_is_tried(
    kind: str, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`localhost` often means ::1 first, where many proxies do not listen."""
    resolve = socket.getaddrinfo

    def closed_one_first(host: Any, *args: Any, **options: Any) -> Any:
        found = resolve("127.0.0.1" if host == "proxy.test" else host, *args, **options)
        return [(*found[0][:4], ("127.0.0.1", 1)), *found] if host == "proxy.test" else found

    monkeypatch.setattr(socket, "getaddrinfo", closed_one_first)
    with proxy() as (address, heads), scripted_server(answer(FOUND), tls=tls) as server:
        monkeypatch.setenv("HTTPS_PROXY", f"http://proxy.test:{address.rpartition(':')[2]}")
        assert ask(server.url, kind) == FOUND
    assert len(heads) == 1


@pytest.mark.parametrize(
    "proxy", ["socks5://localhost", "http://proxy:port", "http://ann:secret@proxy:99999"]
)
def test_wrong_settings_are_refused(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(
        UsageError, match="is not the address of an HTTP proxy; write, for example"
    ) as error:
        isotone.connect("https://localhost:9")
    assert "secret" not in str(error.value)
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere.pem")
    with pytest.raises(UsageError, match=r"AWS_CA_BUNDLE='/nowhere\.pem' cannot be read"):
        isotone.connect("https://localhost:9")


# Keys


def test_temporary_keys_are_renewed_before_they_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile's `credential_process` is run again when its keys are about to expire, not before."""
    pytest.importorskip("botocore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    given, runs = tmp_path / "given.json", tmp_path / "runs"
    script = tmp_path / "keys.py"
    script.write_text(
        f"open({str(runs)!r}, 'a').write('x'); print(open({str(given)!r}).read())", "utf-8"
    )

    def give(key: str, minutes: float) -> None:
        expires = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
        keys = {"AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t"}
        given.write_text(json.dumps({"Version": 1, "Expiration": expires, **keys}), "utf-8")

    config = tmp_path / "config"
    config.write_text(f"[profile work]\ncredential_process = {sys.executable} {script}\n", "utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    give("first", 60)
    source = credentials.for_amazon("work")
    assert [source().access_key, source().access_key] == ["first", "first"]
    assert runs.read_text() == "x"
    give("second", 1)  # botocore renews keys that expire within ten minutes
    source = credentials.for_amazon("work")
    assert source().access_key == "second"
    give("third", 60)
    assert source().access_key == "third"
