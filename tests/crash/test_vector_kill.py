"""SIGKILL while vectors are written, and while an index is filled: the index has what its table has.

`ISOTONE_KILLS=100 pytest tests/crash/test_vector_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

from tests.crash.vector_site import DEFINITIONS, INDEX, vector
from tests.programs import python

import isotone

KILLS = int(os.environ.get("ISOTONE_KILLS", "3"))
SITE = Path(__file__).with_name("vector_site.py")


def killed(path: Path, seconds: float) -> int:
    """Let the site write for a while after its first commit, kill it, and say what it told last."""
    site = python(SITE, path)
    assert site.stdout is not None
    first = site.stdout.readline()
    time.sleep(seconds)
    site.kill()
    lines = (first + site.communicate()[0]).splitlines(keepends=True)
    return int([line for line in lines if line.endswith("\n")][-1])


def test_an_index_survives_kills_with_its_table(tmp_path: Path) -> None:
    path, random = tmp_path / "f.db", Random(1)
    with isotone.open(path) as database:
        database.client().create_table(
            TableName="tab",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    for turn in range(KILLS):
        told = killed(path, random.uniform(0, 0.5))
        with isotone.open(path) as database:
            client = database.client()
            assert database.check() == []
            assert client.get_item(TableName="tab", Key={"p": {"S": f"{told}"}})["Item"]
            if turn == 0:  # the others find an index that is being filled, or is complete
                client.update_table(
                    TableName="tab",
                    AttributeDefinitions=DEFINITIONS,
                    VectorIndexUpdates=[{"Create": INDEX}],
                )
    with isotone.open(path) as database:
        database.finish_maintenance()
        assert database.check() == []
        client = database.client()
        pages = client.get_paginator("scan").paginate(TableName="tab")
        items = [item for page in pages for item in page["Items"]]
        for group in ("g", "moved"):
            found = client.search_vectors(
                TableName="tab",
                IndexName="near",
                SearchVector=vector(0),
                TopK=100,
                SearchConditionExpression="g = :g",
                ExpressionAttributeValues={":g": {"S": group}},
            )["SearchResults"]
            distances = sorted(
                2 * abs(float(item["v"]["L"][0]["N"])) for item in items if item["g"]["S"] == group
            )
            assert [result["Score"] for result in found] == distances[:100]
