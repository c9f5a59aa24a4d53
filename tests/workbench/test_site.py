"""The paths of the page: its files, its policy, and who may call."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from tests.workbench.page import Browserless

import isotone
from isotone.errors import UsageError
from isotone.server import running_server
from isotone.workbench import Workbench
from isotone.workbench.site import FILES


def test_the_page_is_sent_with_a_strict_policy(page):
    answer = page.send("GET", "/workbench/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("path", ["/workbench/", "/workbench"])
def test_head_is_answered_like_get(page, path):
    got, headed = page.send("GET", path), page.send("HEAD", path)
    assert (headed.status, headed.body) == (got.status, b"")
    assert headed.headers["Content-Length"] == got.headers["Content-Length"]


def test_the_page_has_no_inline_script_or_style():
    text = (FILES / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*src=)[^>]*>", text) == []
    assert "<style" not in text
    assert "style=" not in text


def test_files_with_a_hash_in_their_name_are_kept_for_ever(page):
    (name,) = re.findall(r'src="\./(assets/[^"]+)"', page.send("GET", "/workbench/").body.decode())
    answer = page.send("GET", f"/workbench/{name}")
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    zipped = page.send("GET", f"/workbench/{name}", Accept_Encoding="gzip")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == answer.body


def test_all_files_together_are_small():
    sizes = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in FILES.rglob("*.*")}
    assert sum(sizes.values()) < 400_000, sizes


@pytest.mark.parametrize(
    "path",
    [
        "/workbench/../pyproject.toml",
        "/workbench/%2e%2e/site.py",
        "/workbench//etc/passwd",
        "/workbench/assets/",
        "/workbench/nothing.js",
    ],
)
def test_no_other_file_is_sent(page, path):
    assert page.send("GET", path).status == 404


def test_a_browser_at_an_unknown_address_gets_a_link_to_the_page(page):
    answer = page.send("GET", "/workbench/nowhere", Accept="text/html,*/*")
    assert answer.status == 404
    assert b"href=/workbench/" in answer.body
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_browser_at_the_root_is_sent_to_the_page(page):
    answer = page.send("GET", "/", Accept="text/html,application/xhtml+xml")
    assert (answer.status, answer.headers["Location"]) == (302, "/workbench/")
    assert page.send("GET", "/workbench").status == 302
    assert page.send("GET", "/", Accept="*/*").body.startswith(b"healthy: ")


def test_the_api_of_the_database_is_where_it_was(page):
    answer = page.send("POST", "/", b"{}", X_Amz_Target="DynamoDB_20120810.ListTables")
    assert answer.status in (400, 404)  # without a signature or content type, as before
    assert page.send("POST", "/elsewhere", b"{}").status == 404


def test_a_call_without_the_header_is_refused(page):
    answer = page.send("POST", "/workbench/api/session", b"{}")
    assert answer.status == 403
    assert answer.json["error"]["code"] == "Refused"
    assert page.send("GET", "/workbench/api/session", X_Isotone_Workbench="1").status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1"])
def test_a_page_of_another_origin_cannot_call(page, origin):
    answer = page.send(
        "POST", "/workbench/api/session", b"{}", X_Isotone_Workbench="1", Origin=origin
    )
    assert answer.status == 403
    preflight = page.send(
        "OPTIONS",
        "/workbench/api/session",
        Origin=origin,
        Access_Control_Request_Method="POST",
        Access_Control_Request_Headers="x-isotone-workbench",
    )
    assert preflight.status == 403
    assert "Access-Control-Allow-Origin" not in preflight.headers


def test_a_name_that_was_made_to_point_here_is_no_origin_of_ours(page):
    for host in ("evil.example", "evil.example:8000"):
        answer = page.send(
            "POST",
            "/workbench/api/session",
            b"{}",
            X_Isotone_Workbench="1",
            Host=host,
            Origin=f"http://{host}",
        )
        assert answer.status == 403


def test_a_name_of_anywhere_is_no_origin_of_ours_where_every_host_is_allowed():
    with isotone.open() as database:
        pages = Workbench(database, target=":memory:")
        with running_server(database, pages=pages, allow_hosts=["*"]) as url:
            page = Browserless(url)
            given = {"X_Isotone_Workbench": "1", "Host": "evil.example"}
            rebound = page.send(
                "POST", "/workbench/api/session", b"{}", Origin="http://evil.example", **given
            )
            assert rebound.status == 403
            assert page.call("session")["writable"] is True


def test_errors_are_values_with_the_engines_own_words(page):
    missing = page.execute("Scan", {"TableName": "Nothing"})
    assert missing["error"]["code"] == "ResourceNotFoundException"
    assert "error" in page.call("nothing")
    wrong = page.send(
        "POST", "/workbench/api/session", b"{not json", X_Isotone_Workbench="1", Origin=page.url
    )
    assert json.loads(wrong.body)["error"]["code"] == "BadRequest"
    deep = page.send(
        "POST", "/workbench/api/session", b"[" * 100_000, X_Isotone_Workbench="1", Origin=page.url
    )
    assert json.loads(deep.body)["error"]["code"] == "UsageError"


def test_a_server_with_credentials_has_no_page(tmp_path):
    with (
        isotone.open() as database,
        pytest.raises(UsageError, match="isotone workbench"),
        running_server(
            database,
            pages=Workbench(database, target=":memory:"),
            credentials=tmp_path / "users.json",
        ),
    ):
        pass
