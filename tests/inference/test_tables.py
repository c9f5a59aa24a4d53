"""Tables made by hand, and the modules that are inferred from them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.inference.tables import TABLES, Fill

import isotone
from isotone.inference.checking import entities_of, entity_for, table_of

RUFF = Path(sys.executable).parent / "ruff"


def inferred(fill: Fill) -> tuple[isotone.Inferred, list[Any]]:
    with isotone.open(":memory:") as database:
        table = fill(database.client())
        found = isotone.infer(isotone.connect(database), table)
        return found, database.execute("Scan", {"TableName": table})["Items"]


@pytest.mark.parametrize("fill", TABLES.values(), ids=TABLES)
def test_every_item_is_read_and_written_as_it_was(fill: Fill) -> None:
    found, items = inferred(fill)
    assert (found.items, found.unmodelled, found.is_whole) == (len(items), 0, True)
    module = found.load()
    table = table_of(module)
    counts = dict.fromkeys(found.entities, 0)
    by_name = {entity.name: entity for entity in found.entities}
    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        store.accept_keys(*entities_of(module))
        for item in items:
            store.backend.execute("PutItem", {"TableName": table.name, "Item": item})
            entity = entity_for(table, item)
            assert entity is not None
            counts[by_name[entity.__name__]] += 1
            schema = entity.__schema__
            read = schema.from_item(item, require_all_fields=True)
            assert (
                store.get(entity, **{name: getattr(read, name) for name in schema.identity}) == read
            )
            store.put(read)
            key = schema.primary_key(read.__dict__)
            (written,) = [
                store.backend.execute("GetItem", {"TableName": table.name, "Key": key})["Item"]
            ]
            lost = {name for name, value in item.items() if "NULL" not in value} - written.keys()
            assert not lost
            assert {name: written[name] for name in item if name in written} == {
                name: value for name, value in item.items() if name in written
            }
            only_in_key = set(entity.__schema__.fields) & (written.keys() - item.keys())
            assert written.keys() - item.keys() == only_in_key | ({table.tag} - item.keys())
        assert store.differences(table) == []
    assert {entity.name: entity.items for entity in found.entities} == {
        entity.name: count for entity, count in counts.items()
    }


@pytest.mark.parametrize("fill", TABLES.values(), ids=TABLES)
def test_the_source_is_formatted_and_free_of_faults(fill: Fill, tmp_path: Path) -> None:
    found, _ = inferred(fill)
    path = tmp_path / "model.py"
    path.write_text(found.source, encoding="utf-8")
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,UP"]):
        words = [str(RUFF), *command[:1], "--isolated", "--target-version", "py311", *command[1:]]
        ended = subprocess.run(
            [*words, path.name], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
