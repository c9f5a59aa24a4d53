"""Update expressions: every clause, every type, every conflict, and what ReturnValues gives back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from tests.oracle.corpus.item import ITEM, NAMES, used
from tests.oracle.corpus.update_texts import BAD, GOOD, VALUES
from tests.oracle.scripts import INDEXED, SIMPLE, Script, Step, n, s, ss, step

# The service answers UPDATED_OLD and UPDATED_NEW with the updated paths alone, DynamoDB Local with the
# whole attributes that they lie in: the two are not compared there.
NESTED = re.compile(r"\w[.\[]")
RETURNED = ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")


def _update(text: str, name: str = "key", **more: Any) -> Step:
    names, values = used([text], {**NAMES, "#p": "p"}), used([text], VALUES)
    optional = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": values}
    return step(
        "UpdateItem",
        TableName="simple",
        Key={"p": s(name)},
        UpdateExpression=text,
        **{member: pool for member, pool in optional.items() if pool},
        **more,
    )


def _each(texts: list[str], returned: tuple[str, ...]) -> Iterator[Step]:
    """Every text on the same item, and on an item that does not exist yet."""
    for text, kind in itertools.product(texts, returned):
        if kind.startswith("UPDATED") and NESTED.search(text):
            continue
        yield step("PutItem", TableName="simple", Item=ITEM)
        yield _update(text, ReturnValues=kind)
        yield step("GetItem", TableName="simple", Key={"p": s("key")})
    for text in texts:
        yield step("DeleteItem", TableName="simple", Key={"p": s("fresh")})
        yield _update(text, "fresh", ReturnValues="ALL_NEW")


def _limits() -> Iterator[Step]:
    """Growth beyond 400 KB, sums beyond the range, sets that become blank."""
    yield step(
        "PutItem",
        TableName="simple",
        Item={"p": s("key"), "x": s("x" * (400 * 1024 - 20)), "n": n("9e125"), "s": ss("a")},
    )
    yield step(
        "UpdateItem",
        TableName="simple",
        Key={"p": s("key")},
        UpdateExpression="SET y = :y",
        ExpressionAttributeValues={":y": s("y" * 50)},
    )
    yield step(
        "UpdateItem",
        TableName="simple",
        Key={"p": s("key")},
        UpdateExpression="REMOVE x SET y = :y",
        ExpressionAttributeValues={":y": s("y" * 50)},
        ReturnConsumedCapacity="TOTAL",
    )
    yield step(
        "UpdateItem",
        TableName="simple",
        Key={"p": s("key")},
        UpdateExpression="ADD n :n",
        ExpressionAttributeValues={":n": n("9e125")},
    )
    yield step(
        "UpdateItem",
        TableName="simple",
        Key={"p": s("key")},
        UpdateExpression="DELETE s :s",
        ExpressionAttributeValues={":s": ss("a")},
        ReturnValues="ALL_NEW",
    )
    for one, other in itertools.product(
        (
            "1e-130",
            "1",
            "12345678901234567890123456789012345678",
            "-1",
            "9.9999999999999999999999999999999999999e125",
            "3",
            "1e38",
        ),
        repeat=2,
    ):
        yield step("PutItem", TableName="simple", Item={"p": s("key"), "n": n(one)})
        for text in ("SET n = n + :n", "SET n = n - :n", "ADD n :n"):
            yield step(
                "UpdateItem",
                TableName="simple",
                Key={"p": s("key")},
                UpdateExpression=text,
                ExpressionAttributeValues={":n": n(other)},
                ReturnValues="UPDATED_NEW",
            )


def _capacity() -> Iterator[Step]:
    """What an update costs the table and each index, as entries come, change, move and go."""
    key = {"p": s("a"), "s": n(1)}
    texts = [
        *(
            "SET x = :v",
            "SET g = :v, r = :n",
            "SET x = :w",
            "SET l = :v",
            "SET l = :w",
            "SET r = :m",
        ),
        *(
            "SET other = :v",
            "SET x = :big",
            "REMOVE x",
            "SET g = :w",
            "REMOVE g",
            "REMOVE r, l",
            "SET g = :v",
        ),
        *("SET r = :n, l = :v, x = :big", "SET x = :big", "REMOVE g, r, l, x"),
    ]
    pool = {":v": s("v"), ":w": s("w"), ":n": n(1), ":m": n(2), ":big": s("x" * 2500)}
    for text in texts:
        values = used([text], pool)
        yield step(
            "UpdateItem",
            TableName="indexed",
            Key=key,
            UpdateExpression=text,
            **({"ExpressionAttributeValues": values} if values else {}),
            ReturnConsumedCapacity="INDEXES",
            ReturnItemCollectionMetrics="SIZE",
            ReturnValues="ALL_NEW",
        )
    for size in (10, 1500, 4900):
        item = {**key, "g": s("g"), "r": n(1), "l": s("l"), "x": s("x" * size)}
        for _ in range(2):
            yield step("PutItem", TableName="indexed", Item=item, ReturnConsumedCapacity="INDEXES")
    yield step("DeleteItem", TableName="indexed", Key=key, ReturnConsumedCapacity="INDEXES")
    yield step("DeleteItem", TableName="indexed", Key=key, ReturnConsumedCapacity="INDEXES")


SCRIPTS = (
    Script("updates/good", (SIMPLE,), list(_each(GOOD, RETURNED))),
    Script("updates/bad", (SIMPLE,), list(_each(BAD, ("ALL_NEW",)))),
    Script("updates/limits", (SIMPLE,), list(_limits())),
    Script("capacity/updates", (INDEXED,), list(_capacity())),
)
