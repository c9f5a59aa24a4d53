"""What is a host, and what only looks like one."""

from __future__ import annotations

import ipaddress
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isotone.authority import host_in, is_loopback, is_origin

LETTERS = string.ascii_letters + string.digits + "-_"


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST.:8000", "localhost"),
        ("db-1.my_shop.internal:", "db-1.my_shop.internal"),
        ("127.0.0.1:8000", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]:80", "::1"),
        ("[::FFFF:10.0.0.1]", str(ipaddress.IPv6Address("::ffff:10.0.0.1"))),
        ("", ""),
    ],
)
def test_a_host_without_its_port(authority, host):
    assert host_in(authority) == host


# Each of these is a name of this machine to a reader that stops early or looks at the end alone.
DISGUISED = (
    "[::1]evil.com",
    "[::1]:80evil.com",
    "[::1].evil.com",
    "[::1]@evil.com",
    "[::1%.evil.com]",
    "[localhost]",
    "[127.0.0.1]",
    "evil.com#.localhost",
    "evil.com?.localhost",
    "evil.com/.localhost",
    "evil.com\\.localhost",
    "evil.com:80#.localhost",
    "evil.com:80.localhost",
    "evil.com .localhost",
    "evil.com,localhost",
    "evil.com\t.localhost",
    "evil.com%2f.localhost",
    "evil.com;.localhost",
    "evil.com&.localhost",
    "evil.com\x00.localhost",
    "evil.com..localhost",
    ".localhost",
    "localhost..",
    "localhost@evil.com",
    "localhost:evil.com",
    "localhost:80@evil.com",
    "localhost:80:80",
    "localhost\n",
    " localhost",
    "\xa0localhost",
    "::1",
    "[::1",
    "::1]",
)


@pytest.mark.parametrize("authority", DISGUISED)
def test_what_only_looks_like_a_host(authority):
    assert host_in(authority) is None
    assert not is_origin(f"http://{authority}")


def parsed(authority: str) -> str | None:
    """The host of an authority, one character after the other, by the grammar of RFC 3986 and the names of hosts."""
    if authority.startswith("["):
        inside, bracket, port = authority[1:].partition("]")
        try:
            host = str(ipaddress.IPv6Address(inside)) if "%" not in inside else None
        except ValueError:
            host = None
        if not bracket or (port and not port.startswith(":")):
            return None
        port = port[1:]
    else:
        host, _, port = authority.partition(":")
        labels = host.removesuffix(".").split(".") if host else []
        if host == "." or not all(label and set(label) <= set(LETTERS) for label in labels):
            return None
        host = host.removesuffix(".").lower()
    return host if set(port) <= set(string.digits) and len(port) <= 5 else None


PIECES = st.sampled_from(
    [
        "[",
        "]",
        "::1",
        "localhost",
        "evil.com",
        ".",
        ":",
        "80",
        "%",
        "#",
        "@",
        "/",
        "\\",
        " ",
        "\n",
        "-",
        "_",
        "A",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join) | st.text(LETTERS + "[]:.%@#/", max_size=20))
@example(".")
def test_a_host_is_that_of_the_grammar(authority):
    assert host_in(authority) == parsed(authority)


@given(st.lists(PIECES, max_size=8).map("".join))
@example("::1%[")
def test_only_names_of_this_machine_are_loopback(host):
    if is_loopback(host):
        labels = host.lower().removesuffix(".").split(".")
        assert labels[-1] == "localhost" or host == "::1"
        assert all(set(label) <= set(LETTERS) for label in labels) or host == "::1"


@pytest.mark.parametrize(
    "text", ["http://localhost:3000", "chrome-extension://abcdef", "HTTPS://[::1]:1"]
)
def test_an_origin(text):
    assert is_origin(text)


@pytest.mark.parametrize(
    "text", ["http://", "http://a/", "://a", "a", "http:/a", "null", "http://a b"]
)
def test_no_origin(text):
    assert not is_origin(text)
