"""A process that writes vectors into a file until it is killed, and tells what is acknowledged.

python vector_site.py FILE
"""

from __future__ import annotations

import random
import sys
from typing import Any

import isotone

INDEX: dict[str, Any] = {
    "IndexName": "near",
    "VectorAttribute": {"AttributeName": "v"},
    "SearchSchema": [{"AttributeName": "g", "SearchSchemaElementType": "HASH"}],
    "Dimensions": 4,
    "DistanceFunction": "EUCLIDEAN",
    "Projection": {"ProjectionType": "ALL"},
}
DEFINITIONS = [{"AttributeName": "g", "AttributeType": "S"}]


def vector(number: int) -> list[dict[str, str]]:
    return [{"N": str(number)}] * 4


def write(path: str) -> None:
    """Put, move and delete items by number; each is told when it is committed."""
    with isotone.open(path) as database:
        client = database.client()
        number = client.scan(TableName="tab", Select="COUNT")["Count"]
        while True:
            number += 1
            item = {"p": {"S": f"{number}"}, "g": {"S": "g"}, "v": {"L": vector(number)}}
            moved = {"p": {"S": f"{random.randrange(number)}"}, "g": {"S": "moved"}}
            client.transact_write_items(
                TransactItems=[
                    {"Put": {"TableName": "tab", "Item": item}},
                    {
                        "Put": {
                            "TableName": "tab",
                            "Item": {**moved, "v": {"L": vector(-number)}},
                        }
                    },
                ]
            )
            if number % 50 == 0:
                client.search_vectors(
                    TableName="tab",
                    IndexName="near",
                    SearchVector=vector(0),
                    TopK=1,
                    SearchConditionExpression="g = :g",
                    ExpressionAttributeValues={":g": {"S": "g"}},
                )
            print(number, flush=True)


if __name__ == "__main__":
    write(sys.argv[1])
