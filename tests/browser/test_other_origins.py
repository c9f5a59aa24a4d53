"""From a page of another origin, in a real browser, nothing can be read or written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.browser.chromium import Rebinding, Site, needs_chromium, running_site, visit
from tests.server.fakes import headers_of

import isotone
from isotone.server import running_server
from isotone.testing import Faults

pytestmark = needs_chromium

TABLE = "Secrets"
SECRET = "what no page may read"


@pytest.fixture
def database() -> Iterator[Any]:
    with isotone.open() as database:
        database.execute(
            "CreateTable",
            {
                "TableName": TABLE,
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        item = {"id": {"S": "1"}, "text": {"S": SECRET}}
        database.execute("PutItem", {"TableName": TABLE, "Item": item})
        yield database


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site("evil.example") as site:
        yield site


def is_unharmed(database: Any) -> bool:
    items = database.execute("Scan", {"TableName": TABLE})["Items"]
    return bool(items == [{"id": {"S": "1"}, "text": {"S": SECRET}}])


def call(operation: str, request: dict[str, Any]) -> str:
    """The options of a `fetch` that sends a signed request."""
    body = json.dumps(request)
    return json.dumps({"method": "POST", "headers": headers_of(operation), "body": body})


READ = call("Scan", {"TableName": TABLE})
WRITE = call("PutItem", {"TableName": TABLE, "Item": {"id": {"S": "2"}}})
DROP = call("DeleteTable", {"TableName": TABLE})

ATTACK = """
const url = %s;
const found = {};
found.read = await outcome(fetch(url, %s));
found.write = await outcome(fetch(url, %s));
found.drop = await outcome(fetch(url, %s));
found.page = await outcome(fetch(url));
for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
    found[type] = await outcome(fetch(url, {method: "POST", mode: "no-cors", body: %s,
                                            headers: {"Content-Type": type}}));
found.fault = await outcome(fetch(url + "faults", {method: "POST", mode: "no-cors",
                                                   body: '{"fault": "fail", "operation": "Scan"}'}));
const form = document.createElement("form");
const frame = document.createElement("iframe");
frame.name = form.target = "frame";
Object.assign(form, {action: url + "faults", method: "post", enctype: "text/plain"});
form.innerHTML = '<input name=\\'{"fault": "fail", "operation": "Scan", "x\\' value=\\'":1}\\'>';
document.body.append(frame, form);
const loaded = new Promise((done) => { frame.onload = done; });
form.submit();
await Promise.race([loaded, after(5000)]);
found.socket = await new Promise((done) => {
    const socket = new WebSocket(url.replace("http", "ws"));
    socket.onopen = () => done("open");
    socket.onerror = () => done("refused");
});
return found;
"""
BODY = json.dumps(json.dumps({"TableName": TABLE, "Item": {"id": {"S": "3"}}}))


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "evil.example"])
def test_a_page_of_another_origin_reads_and_writes_nothing(database, site, tmp_path, name):
    faults = Faults()
    with running_server(faults.served(database), threaded=True) as url:
        target = json.dumps(f"http://{name}:{urlsplit(url).port}/")
        found = visit(site, ATTACK % (target, READ, WRITE, DROP, BODY), tmp_path)
    assert found.pop("socket") == "refused"
    for attempt, answer in found.items():
        assert (attempt, answer["type"]) in [(attempt, "error"), (attempt, "opaque")]
        assert (attempt, answer.get("status", 0)) == (attempt, 0)
        assert SECRET not in answer["text"]
    assert not faults.ordered
    assert is_unharmed(database)


REBOUND = """
const found = {};
await outcome(fetch(%s + "/rebind", {method: "POST", mode: "no-cors"}));
for (let i = 0; i < 50; i++) {  // until connections to the site are closed
    found.page = await outcome(fetch("/?" + i));
    if (found.page.status != 200) break;
    await after(100);
}
found.read = await outcome(fetch("/", %s));
found.write = await outcome(fetch("/", %s));
return found;
"""


def test_a_page_whose_name_is_rebound_reads_and_writes_nothing(database, site, tmp_path):
    with running_server(database) as url:
        rebinding = Rebinding(site.server_port)
        try:
            site.on_rebind = lambda: setattr(rebinding, "port", urlsplit(url).port)
            at = f"http://{site.name}:{rebinding.own_port}"
            script = REBOUND % (json.dumps(site.origin), READ, WRITE)
            found = visit(site, script, tmp_path, at=at)
        finally:
            rebinding.close()
    # The browser takes the server for the page's own site, and shows it the answers: refusals.
    assert {each: answer["status"] for each, answer in found.items()} == {
        "page": 403,
        "read": 403,
        "write": 403,
    }
    assert all(
        "does not answer to the host evil.example" in each["text"] for each in found.values()
    )
    assert is_unharmed(database)


def test_a_page_of_an_allowed_origin_reads_and_writes(database, site, tmp_path):
    with running_server(database, allow_origins=[site.origin]) as url:
        script = "const url = %s; return {write: await outcome(fetch(url, %s)), read: await outcome(fetch(url, %s))}"
        found = visit(site, script % (json.dumps(url + "/"), WRITE, READ), tmp_path)
    assert found["write"] == {"type": "cors", "status": 200, "text": "{}"}
    assert json.loads(found["read"]["text"])["Count"] == 2
