"""Encrypted connections: boto3 and isotone.connect over TLS, certificates that change, and files that are none."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import ssl
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

import boto3
import pytest
from tests.sdks.server_process import start_server
from tests.server.certificates import make_certificate, needs_openssl
from tests.server.fakes import headers_of
from tests.server.signing import signed, write_credentials

import isotone
from isotone.cli.database import connect
from isotone.errors import ConnectionFailed, UsageError
from isotone.server import running_server

pytestmark = needs_openssl


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "one")


@pytest.fixture
def secure_url(service, pair, event_loop_of_server):
    with running_server(service, tls_cert=pair[0], tls_key=pair[1]) as url:
        yield url


def trusting(*certs):
    context = ssl.create_default_context()
    for cert in certs:
        context.load_verify_locations(cert)
    return context


def ask(url, cert, headers, body=b"{}"):
    connection = http.client.HTTPSConnection(
        urlsplit(url).netloc, timeout=10, context=trusting(cert)
    )
    try:
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_requests_are_served(secure_url, pair):
    assert secure_url.startswith("https://127.0.0.1:")
    for operation in ("GetItem", "PutItem"):
        assert ask(secure_url, pair[0], headers_of(operation)) == (
            200,
            b'{"%b":{}}' % operation.encode(),
        )
    large = b'"big%d"' % 3_000_000
    assert len(ask(secure_url, pair[0], headers_of("GetItem"), large)[1]) == 3_000_002


def test_a_client_without_tls_gets_nothing(secure_url, service):
    with socket.create_connection(("127.0.0.1", urlsplit(secure_url).port), timeout=10) as plain:
        plain.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = plain.recv(1000)
    assert not received.startswith(b"HTTP")
    assert (service.reads, service.groups) == ([], [])


def test_an_unsigned_body_is_taken_over_tls(service, pair, tmp_path):
    credentials = write_credentials(tmp_path / "users.json", ann={})

    def request(url):
        headers = {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}
        _, _, lowered, body = signed(
            headers=headers, moment=datetime.now(UTC), host=urlsplit(url).netloc
        )
        return {name.decode(): value.decode() for name, value in lowered.items()}, body

    with running_server(service, credentials=credentials, tls_cert=pair[0], tls_key=pair[1]) as url:
        assert ask(url, pair[0], *request(url))[0] == 200
    with running_server(service, credentials=credentials) as url:
        plain = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
        headers, body = request(url)
        plain.request("POST", "/", body, headers)
        assert plain.getresponse().status == 400
        plain.close()


def test_boto3_and_isotone_connect(pair, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", str(pair[0]))
    with (
        isotone.open() as database,
        running_server(database, tls_cert=pair[0], tls_key=pair[1]) as url,
    ):
        client = boto3.Session().client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
        assert client.list_tables()["TableNames"] == []
        with connect(url) as connection:
            assert connection.execute("ListTables", {}) == {"TableNames": []}
        monkeypatch.delenv("AWS_CA_BUNDLE")
        with (
            pytest.raises(
                ConnectionFailed, match=r"self.signed.*; .* set AWS_CA_BUNDLE to the file"
            ),
            connect(url) as connection,
        ):
            connection.execute("ListTables", {})


def test_the_wrong_scheme_is_reported(service, pair, event_loop_of_server):
    with running_server(service, tls_cert=pair[0], tls_key=pair[1]) as url:
        plain = url.replace("https", "http")
        told = f"{plain} closed the connection without an answer; if it uses TLS, write {url}$"
        with pytest.raises(ConnectionFailed, match=told), connect(plain) as connection:
            connection.execute("ListTables", {})
    with running_server(service) as url:
        secure = url.replace("http", "https")
        with (
            pytest.raises(ConnectionFailed, match=f"no TLS at this port; write {url}$"),
            connect(secure) as connection,
        ):
            connection.execute("ListTables", {})


def test_the_key_may_be_in_the_same_file(service, pair, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(pair[0].read_bytes() + pair[1].read_bytes())
    with running_server(service, tls_cert=both) as url:
        assert ask(url, both, headers_of("GetItem"))[0] == 200


@pytest.mark.parametrize(
    ("cert", "key", "told"),
    [
        ("none.pem", None, "none.pem cannot be read: No such file"),
        ("one.pem", None, "one.pem cannot be used for TLS: it must have .* --tls-key names"),
        (
            "one.pem",
            "two.key",
            "one.pem and two.key cannot be used for TLS: the key is not that of the certificate",
        ),
        ("one.pem", "locked.key", "the key for TLS is encrypted"),
        ("junk.pem", "one.key", "junk.pem and one.key cannot be used for TLS"),
        (None, "one.key", "--tls-key needs the certificate, too"),
    ],
)
def test_files_that_are_no_pair(service, tmp_path, monkeypatch, cert, key, told):
    monkeypatch.chdir(tmp_path)
    make_certificate(tmp_path, "one")
    make_certificate(tmp_path, "two")
    make_certificate(tmp_path, "locked", password="a password")
    (tmp_path / "junk.pem").write_text("junk")
    with pytest.raises(UsageError, match=told), running_server(service, tls_cert=cert, tls_key=key):
        pass


def served_name(url, *certs):
    """The name in the certificate that new connections get."""
    address = urlsplit(url).hostname, urlsplit(url).port
    with (
        socket.create_connection(address, timeout=10) as plain,
        trusting(*certs).wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return dict(part[0] for part in secure.getpeercert()["subject"])["commonName"]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP")
def test_a_new_pair_is_taken_on_a_signal_and_a_broken_one_is_not(tmp_path):
    one, two = make_certificate(tmp_path, "one"), make_certificate(tmp_path, "two")
    cert, key, log = tmp_path / "cert.pem", tmp_path / "cert.key", tmp_path / "log"

    def put(pem, secret):
        cert.write_bytes(pem.read_bytes())
        key.write_bytes(secret.read_bytes())

    def reloaded(words):
        log.write_text("")
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while words not in log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    put(*one)
    options = ["--tls-cert", str(cert), "--tls-key", str(key), "--log-level", "info"]
    with log.open("a") as stderr, start_server(None, *options, stderr=stderr) as server:
        lasting = http.client.HTTPSConnection(
            urlsplit(server.url).netloc, timeout=10, context=trusting(one[0], two[0])
        )
        lasting.request("GET", "/")
        assert lasting.getresponse().read().startswith(b"healthy")
        assert served_name(server.url, one[0], two[0]) == "one"
        put(two[0], one[1])
        reloaded("the certificate stays as it is")
        assert served_name(server.url, one[0], two[0]) == "one"
        key.unlink()
        os.mkfifo(key)  # opening it would wait for its writer
        reloaded(f"the certificate stays as it is: {key} is a pipe")
        assert served_name(server.url, one[0], two[0]) == "one"
        key.unlink()
        put(*two)
        reloaded("the certificate was read again")
        assert served_name(server.url, one[0], two[0]) == "two"
        lasting.request("GET", "/")  # a connection goes on with what it began
        assert lasting.getresponse().read().startswith(b"healthy")
        lasting.close()
        assert server.stop() == 0
