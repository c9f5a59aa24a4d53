"""A web service over entities: pages with cursors, ETags from versions, and errors as statuses.

    pip install ../.. fastapi uvicorn
    uvicorn app:app                     # http://127.0.0.1:8000/docs, with the data in shop.db

SHOP_DATABASE names another database: a file, `:memory:`, the URL of a server, or `dynamodb://eu-west-1`. Several
processes accept each other's cursors if they have the same SHOP_CURSOR_SECRET, 16 characters or more.

`Order` is declared once. It is the item in the database, the body of a request, and the response.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

import isotone
from isotone import (
    AsyncStore,
    Attr,
    Condition,
    Entity,
    EntityKey,
    Global,
    Index,
    Key,
    Page,
    Patch,
    Table,
    computed,
    created,
    desc,
    field,
    updated,
    version,
)
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    Contended,
    DeadlineExceeded,
    InvalidCursor,
    InvalidEntity,
    NotFound,
    OutOfRange,
    TransactionFailed,
    VersionConflict,
    WriteRefused,
)

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

Status = Literal["PLACED", "SHIPPED", "CANCELLED"]
CustomerId = Annotated[str, MinLen(1), MaxLen(40)]


class Order(Entity, table=shop):
    """An order of a customer. The newest number comes first."""

    customer_id: Attr[CustomerId] = field(description="who ordered")
    number: Attr[int] = field(min=1, max=99_999, description="unique among the customer's orders")
    status: Attr[Status] = field(default="PLACED", description="where the order is")
    total: Attr[Decimal] = field(min=0, max=999_999, scale=2, description="in euros")
    note: Attr[Annotated[str, MaxLen(500)] | None] = field(default=None)
    is_open: Attr[bool] = computed(lambda order: order.status == "PLACED")
    revision: Attr[int] = version()
    created_at: Attr[datetime] = created()
    updated_at: Attr[datetime] = updated()

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
    by_status = Index("GSI1", "CUSTOMER", customer_id).sort("STATUS", status, desc(number))


# What each request gets


def store_of(request: Request) -> AsyncStore:
    """The store that the application opened."""
    store: AsyncStore = request.app.state.store
    return store


def key_of(customer_id: CustomerId, number: int) -> EntityKey[Order]:
    """The key in the path of a request."""
    return Order.primary.at(customer_id=customer_id, number=number)


def expected_revision(if_match: Annotated[str | None, Header()] = None) -> int | None:
    """The revision that the client has read, from If-Match; None if it does not care."""
    if if_match in (None, "*"):
        return None
    revision = if_match.strip('"')
    if f'"{revision}"' != if_match or not revision.isdecimal():
        raise HTTPException(412, f"If-Match: {if_match} is no ETag of this service")
    return int(revision)


Store = Annotated[AsyncStore, Depends(store_of)]
OrderKey = Annotated[EntityKey[Order], Depends(key_of)]
Expected = Annotated[int | None, Depends(expected_revision)]
Size = Annotated[int, Query(ge=1, le=100, description="orders per page")]


def etag(order: Order) -> str:
    return f'"{order.revision}"'


def unchanged(expected: int | None) -> Condition | None:
    """The condition that the order is still the one that the client has read."""
    return None if expected is None else Order.revision == expected


# The service

router = APIRouter(prefix="/orders", tags=["orders"])


@router.get("")
async def find(
    store: Store,
    customer_id: CustomerId,
    status: Status | None = None,
    cursor: str = "",
    size: Size = 20,
) -> Page[Order]:
    """A page of a customer's orders, the newest first; `cursor` continues after a page."""
    conditions = [Order.customer_id == customer_id]
    if status is not None:
        conditions.append(Order.status == status)
    return await store.page(Order.find(*conditions), size=size, cursor=cursor or None)


@router.post("", status_code=201)
async def create(store: Store, order: Order, response: Response) -> Order:
    """Place an order; 409 if its number is taken."""
    made = await store.create(order)
    response.headers["Location"] = f"/orders/{made.customer_id}/{made.number}"
    response.headers["ETag"] = etag(made)
    return made


@router.get("/{customer_id}/{number}", response_model=Order)
async def read(
    store: Store,
    key: OrderKey,
    response: Response,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Order | Response:
    """An order with its ETag; 304 if the client has it already."""
    order = await store.get(key)
    if order is None:
        raise HTTPException(404, "there is no such order")
    if if_none_match == etag(order):
        return Response(status_code=304, headers={"ETag": etag(order)})
    response.headers["ETag"] = etag(order)
    return order


@router.patch("/{customer_id}/{number}")
async def change(
    store: Store, key: OrderKey, patch: Patch[Order], expected: Expected, response: Response
) -> Order:
    """Change some fields; 412 if the order has another ETag than If-Match says."""
    if not patch:
        raise HTTPException(422, "the patch changes nothing")
    order = await store.update(key, *patch.changes(), when=unchanged(expected))
    response.headers["ETag"] = etag(order)
    return order


@router.delete("/{customer_id}/{number}", status_code=204)
async def delete(store: Store, key: OrderKey, expected: Expected) -> None:
    """Delete an order; 412 if it has another ETag than If-Match says."""
    if await store.delete(key, when=unchanged(expected)) is None:
        raise HTTPException(404, "there is no such order")


# Errors as statuses

# An error has the status of its nearest base class here. Others are faults of the program: 500.
STATUSES: dict[type[Exception], int] = {
    NotFound: 404,
    AlreadyExists: 409,
    ConditionFailed: 409,
    WriteRefused: 409,
    InvalidCursor: 400,
    InvalidEntity: 422,
    OutOfRange: 422,
    Contended: 503,
    DeadlineExceeded: 503,
}


async def refused(request: Request, error: Exception) -> Response:
    """The response for an error of Isotone's; a failed If-Match is 412."""
    if isinstance(error, TransactionFailed):  # has the status of the first write that was refused
        error = error.failures[0].reason
    status = next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)
    if type(error) in (ConditionFailed, VersionConflict) and "if-match" in request.headers:
        status = 412
    return JSONResponse({"detail": str(error)}, status)


async def invalid(request: Request, error: Exception) -> Response:
    """422 with the place of each fault, as FastAPI's own, but without the values: some have no JSON, such as 1e999."""
    assert isinstance(error, RequestValidationError)
    faults = [{name: fault[name] for name in ("type", "loc", "msg")} for fault in error.errors()]
    return JSONResponse({"detail": faults}, 422)


# The application


def create_app(database: str, cursor_secret: bytes) -> FastAPI:
    """The application on a database, which is opened when the server starts."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with isotone.aconnect(database, cursor_secret=cursor_secret) as store:
            await store.create_tables(shop)
            app.state.store = store
            yield

    app = FastAPI(title="Shop", lifespan=lifespan)
    app.include_router(router)
    app.add_exception_handler(RequestValidationError, invalid)
    for kind in STATUSES:
        app.add_exception_handler(kind, refused)
    return app


app = create_app(
    os.environ.get("SHOP_DATABASE", "shop.db"),
    os.environ.get("SHOP_CURSOR_SECRET", secrets.token_hex()).encode(),
)
