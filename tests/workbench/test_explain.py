"""Explain in the workbench: measured where it only reads, and not too much."""

from __future__ import annotations

QUERY = {
    "TableName": "GitHub",
    "KeyConditionExpression": "pk = :p",
    "ExpressionAttributeValues": {":p": {"S": "REPO#ann#notes"}},
}
PUT = {"TableName": "GitHub", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}, "work": {"S": "w"}}}


def test_a_read_is_measured_on_request(page):
    given = {"action": "Query", "request": QUERY}
    found = page.call("explain", given)["explanation"]
    assert found["measured"] is None
    assert found["estimate"]["items_read"] == 13
    (view,) = found["drawing"]["views"]
    rows = view["collections"][0]["rows"]
    assert (
        sum(row.get("state") == "returned" for row in rows)
        + sum(row["read"] for row in rows if row["row"] == "gap")
        == 13
    )
    found = page.call("explain", {**given, "run": True})["explanation"]
    assert found["measured"]["units"] == found["estimate"]["units"]
    statement = "SELECT * FROM GitHub WHERE pk = 'REPO#ann#notes'"
    found = page.call("explain", {"statement": statement, "run": True})["explanation"]
    assert found["measured"]["items_returned"] == 13


def test_a_write_is_estimated_and_never_sent(page, database):
    before = database.execute("Scan", {"TableName": "GitHub"})["Count"]
    given = {"action": "PutItem", "request": PUT}
    found = page.call("explain", given)["explanation"]
    assert found["writes"][0]["index"] is None
    assert found["writes"][0]["change"] == "insert"
    error = page.call("explain", {**given, "run": True})["error"]
    assert error["message"] == "PutItem writes, and Explain only measures what reads"
    statement = "DELETE FROM GitHub WHERE pk = 'REPO#ann#notes' AND sk = 'REPO'"
    assert (
        "writes" in page.call("explain", {"statement": statement, "run": True})["error"]["message"]
    )
    assert database.execute("Scan", {"TableName": "GitHub"})["Count"] == before


def test_a_large_read_is_not_measured(page, monkeypatch):
    monkeypatch.setattr("isotone.workbench.calls._MOST_MEASURED", 0)
    given = {"action": "Scan", "request": {"TableName": "Orders"}, "run": True}
    error = page.call("explain", given)["error"]
    assert error["message"].startswith("to measure it would read about ")


def test_a_batch_is_explained(page):
    get = {"RequestItems": {"GitHub": {"Keys": [{"pk": {"S": "a"}, "sk": {"S": "b"}}]}}}
    found = page.call("explain", {"action": "BatchGetItem", "request": get})["explanation"]
    assert found["title"] == "BatchGetItem of 1 item"
    error = page.call("explain", {"action": "Query", "request": [1]})["error"]
    assert error["message"] == "a request must be a JSON object"
