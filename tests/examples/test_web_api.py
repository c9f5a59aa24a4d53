"""The web service of the examples, as its clients see it, at each kind of address."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.examples.printed import FOLDER

Talk = Callable[[httpx.AsyncClient], Awaitable[None]]


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    path = FOLDER / "web_api" / "app.py"
    spec = importlib.util.spec_from_file_location("web_api_example", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def talk(program: Any, address: str) -> Callable[[Talk], None]:
    """Runs a conversation with the service."""

    @asynccontextmanager
    async def running() -> AsyncIterator[httpx.AsyncClient]:
        app = program.create_app(address, b"sixteen bytes at least")
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
                yield client

    async def run(conversation: Talk) -> None:
        async with running() as client:
            await conversation(client)

    return lambda conversation: asyncio.run(run(conversation))


@pytest.fixture
def ann() -> str:
    """A customer of this test's own."""
    return f"ann-{uuid.uuid4().hex}"


def body(customer_id: str, number: int = 1, **more: Any) -> dict[str, Any]:
    return {"customer_id": customer_id, "number": number, "total": 12.5, **more}


def test_an_order_is_made_read_and_deleted(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        made = await client.post("/orders", json=body(ann, note="gift"))
        assert made.status_code == 201
        assert (made.headers["Location"], made.headers["ETag"]) == (f"/orders/{ann}/1", '"1"')
        read = await client.get(made.headers["Location"])
        assert (read.status_code, read.headers["ETag"]) == (200, '"1"')
        order = read.json()
        assert (order["total"], order["note"], order["is_open"], order["revision"]) == (
            "12.5",
            "gift",
            True,
            1,
        )
        assert order["created_at"] == order["updated_at"] is not None
        gone = await client.delete(f"/orders/{ann}/1")
        assert (gone.status_code, gone.content) == (204, b"")
        assert (await client.get(f"/orders/{ann}/1")).status_code == 404

    talk(conversation)


def test_what_is_not_there_is_404(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        path = f"/orders/{ann}/7"
        answers = [
            await client.get(path),
            await client.patch(path, json={"status": "SHIPPED"}),
            await client.patch(path, json={"status": "SHIPPED"}, headers={"If-Match": '"1"'}),
            await client.delete(path),
        ]
        assert [each.status_code for each in answers] == [404] * 4
        assert "does not exist" in answers[1].json()["detail"]

    talk(conversation)


def test_a_taken_number_is_409(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        assert (await client.post("/orders", json=body(ann))).status_code == 201
        again = await client.post("/orders", json=body(ann, total=1))
        assert again.status_code == 409
        assert "already exists" in again.json()["detail"]
        assert (await client.get(f"/orders/{ann}/1")).json()["total"] == "12.5"

    talk(conversation)


def test_pages_follow_each_other(talk: Callable[[Talk], None], ann: str) -> None:
    async def walk(client: httpx.AsyncClient, **query: Any) -> list[list[int]]:
        pages: list[list[int]] = []
        cursor: str | None = ""
        while cursor is not None:
            answer = await client.get("/orders", params={**query, "cursor": cursor})
            assert answer.status_code == 200
            page = answer.json()
            pages.append([order["number"] for order in page["items"]])
            cursor = page["cursor"]
        return pages

    async def conversation(client: httpx.AsyncClient) -> None:
        for number in range(1, 8):
            status = "SHIPPED" if number % 2 else "PLACED"
            await client.post("/orders", json=body(ann, number, status=status))
        await client.post("/orders", json=body(f"{ann}-b"))
        assert await walk(client, customer_id=ann, size=3) == [[7, 6, 5], [4, 3, 2], [1]]
        assert await walk(client, customer_id=ann) == [[7, 6, 5, 4, 3, 2, 1]]
        assert await walk(client, customer_id=ann, size=3, status="SHIPPED") == [[7, 5, 3], [1]]

        first = (await client.get("/orders", params={"customer_id": ann, "size": 3})).json()
        stolen = {"customer_id": f"{ann}-b", "cursor": first["cursor"]}
        assert (await client.get("/orders", params=stolen)).status_code == 400
        wrong = {"customer_id": ann, "cursor": "nonsense"}
        assert (await client.get("/orders", params=wrong)).status_code == 400
        assert (
            await client.get("/orders", params={"customer_id": ann, "size": 0})
        ).status_code == 422

    talk(conversation)


def test_an_etag_saves_a_response(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        tag = (await client.post("/orders", json=body(ann))).headers["ETag"]
        path = f"/orders/{ann}/1"
        same = await client.get(path, headers={"If-None-Match": tag})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
        await client.patch(path, json={"note": "x"})
        assert (await client.get(path, headers={"If-None-Match": tag})).status_code == 200

    talk(conversation)


def test_an_etag_prevents_lost_updates(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        path = f"/orders/{ann}/1"
        tag = (await client.post("/orders", json=body(ann, note="gift"))).headers["ETag"]

        async def ship(status: str) -> httpx.Response:
            return await client.patch(path, json={"status": status}, headers={"If-Match": tag})

        answers = await asyncio.gather(*(ship(each) for each in ("SHIPPED", "CANCELLED")))
        assert sorted(each.status_code for each in answers) == [200, 412]
        winner = next(each for each in answers if each.status_code == 200)
        assert winner.headers["ETag"] == '"2"'
        assert winner.json()["note"] == "gift"
        assert (await client.get(path)).json() == winner.json()

        assert (await client.delete(path, headers={"If-Match": tag})).status_code == 412
        assert (await client.delete(path, headers={"If-Match": "weak"})).status_code == 412
        for free in ({}, {"If-Match": "*"}, {"If-Match": '"4"'}):
            answer = await client.patch(path, json={"note": None}, headers=free)
            assert (answer.status_code, answer.json()["note"]) == (200, None)
        assert (await client.delete(path, headers={"If-Match": '"5"'})).status_code == 204

    talk(conversation)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"total": "much"}, ["body", "total"]),
        ({"total": -1}, ["body", "total"]),
        ({"number": 100_000}, ["body", "number"]),
        ({"customer_id": ""}, ["body", "customer_id"]),
        ({"status": "LOST"}, ["body", "status"]),
        ({"colour": "red"}, ["body", "colour"]),
    ],
)
def test_a_wrong_value_is_422(
    talk: Callable[[Talk], None], ann: str, wrong: dict[str, Any], place: list[str]
) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        answer = await client.post("/orders", json=body(ann) | wrong)
        assert answer.status_code == 422
        assert [each["loc"] for each in answer.json()["detail"]] == [place]

    talk(conversation)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b'{"customer_id": "a", "number": 1, "total": 1e999}', ["body", "total"]),
        (b'{"customer_id": "a", "number": 1, "total": 1.2345678901234567}', ["body", "total"]),
        (b'{"customer_id": "\\ud800", "number": 1, "total": 1}', ["body", "customer_id"]),
        (b'{"customer_id": "a"', ["body", 19]),
        (b"[]", ["body"]),
    ],
)
def test_odd_json_is_422(talk: Callable[[Talk], None], text: bytes, place: list[Any]) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        headers = {"Content-Type": "application/json"}
        answer = await client.post("/orders", content=text, headers=headers)
        assert answer.status_code == 422
        assert [each["loc"] for each in answer.json()["detail"]] == [place]

    talk(conversation)


def test_a_wrong_patch_is_422(talk: Callable[[Talk], None], ann: str) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        await client.post("/orders", json=body(ann))
        for patch in ({"number": 2}, {"revision": 7}, {"total": None}, {}):
            assert (await client.patch(f"/orders/{ann}/1", json=patch)).status_code == 422
        assert (await client.get(f"/orders/{ann}/1")).headers["ETag"] == '"1"'
        assert (await client.get(f"/orders/{ann}/100000")).status_code == 422

    talk(conversation)


def test_a_client_cannot_forge_what_the_service_maintains(
    talk: Callable[[Talk], None], ann: str
) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        forged = {"revision": 99, "created_at": "1999-01-01T00:00:00Z", "is_open": False}
        made = (await client.post("/orders", json=body(ann, **forged))).json()
        assert (made["revision"], made["is_open"]) == (1, True)
        assert not made["created_at"].startswith("1999")

    talk(conversation)


def test_the_api_describes_itself(talk: Callable[[Talk], None]) -> None:
    async def conversation(client: httpx.AsyncClient) -> None:
        api = (await client.get("/openapi.json")).json()
        schemas = api["components"]["schemas"]
        assert schemas["Order-Input"]["required"] == ["customer_id", "number", "total"]
        assert schemas["Order-Output"]["properties"]["revision"]["readOnly"] is True
        assert "number" not in schemas["Patch_Order_"]["properties"]
        assert (await client.get("/docs")).status_code == 200

    talk(conversation)
