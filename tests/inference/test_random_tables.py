"""Tables of random declarations: the module that is inferred reads every item, and writes it as it was."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Table,
    desc,
    field,
    raw,
    since_epoch,
    written,
)
from isotone.errors import IsotoneError

START = datetime(2024, 2, 28, 23, tzinfo=UTC)

TEXTS = st.sampled_from(
    [
        "",
        "a",
        "a b",
        "Ann",
        "ann",
        "x-1",
        "7",
        "007",
        "2024-01-01",
        "é",
        "日本",
        "a_b",
        "USER",
        "True",
    ]
)
WORDS = st.sampled_from(
    ["a", "Ann", "ann", "bo-1", "x9", "é", "日本", "007", "17", "abc def", "LEAD"]
)
NUMBERS = st.integers(0, 9_999)
TIMES = st.integers(0, 10**6).map(lambda seconds: START + timedelta(seconds=seconds))
DAYS = st.integers(0, 800).map(lambda days: date(2024, 1, 1) + timedelta(days=days))

# How a field of a key is declared: its type, its options, its values, and its forms in a key.
IN_KEYS: dict[str, tuple[Any, dict[str, Any], st.SearchStrategy[Any], list[Any]]] = {
    "text": (str, {}, WORDS, [lambda f: f, raw]),
    "name": (str, {"case": "upper"}, WORDS, [lambda f: f, raw]),
    "number": (int, {"max": 9_999, "alert": None}, NUMBERS, [lambda f: f, desc, raw]),
    "signed": (
        int,
        {"min": -999, "max": 999, "alert": None},
        st.integers(-999, 999),
        [lambda f: f],
    ),
    "price": (
        Decimal,
        {"max": 999, "scale": 2, "alert": None},
        st.decimals(0, 900, places=2),
        [lambda f: f],
    ),
    "at": (
        datetime,
        {"precision": "seconds"},
        TIMES,
        [
            lambda f: f,
            desc,
            lambda f: written(f, "%Y-%m-%d %H:%M:%S"),
            lambda f: since_epoch(f, "milliseconds"),
        ],
    ),
    "created_at": (datetime, {"epoch": True}, TIMES, [since_epoch, lambda f: f]),
    "day": (date, {}, DAYS, [lambda f: f, lambda f: written(f, "%Y%m%d")]),
    "uid": (UUID, {}, st.uuids(version=4), [lambda f: f]),
    "flag": (bool, {}, st.booleans(), [lambda f: f]),
    "status": (
        Literal["open", "sent", "lost"],
        {},
        st.sampled_from(["open", "sent", "lost"]),
        [lambda f: f],
    ),
}
OTHERS: dict[str, tuple[Any, dict[str, Any], st.SearchStrategy[Any]]] = {
    "note": (str, {}, TEXTS),
    "count": (int, {}, st.integers(-(10**12), 10**12)),
    "total": (Decimal, {}, st.decimals(-1000, 1000, places=3)),
    "tags": (set[str], {"default_factory": set}, st.sets(TEXTS, max_size=3)),
    "lines": (
        list[dict[str, Any]],
        {},
        st.lists(st.dictionaries(WORDS, NUMBERS, max_size=2), max_size=2),
    ),
    "scores": (dict[str, int], {}, st.dictionaries(WORDS, NUMBERS, max_size=3)),
    "seen": (datetime | None, {"default": None}, st.none() | TIMES),
    "raw_bytes": (bytes, {}, st.binary(max_size=4)),
    "maybe": (str | None, {"default": None}, st.none() | TEXTS),
    "any": (Any, {}, st.one_of(NUMBERS, TEXTS, st.booleans())),
}
SEPARATORS = ["#", "#", "|", "_", "::", "/"]


@st.composite
def entities(draw: st.DrawFn, table: Table, literal: str) -> tuple[type[Entity], dict[str, Any]]:
    """An entity with random fields and keys, and the strategies of its fields."""
    in_keys = draw(st.lists(st.sampled_from(sorted(IN_KEYS)), min_size=1, max_size=4, unique=True))
    others = draw(st.lists(st.sampled_from(sorted(OTHERS)), max_size=4, unique=True))
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": {}}
    values: dict[str, Any] = {}
    for name in [*in_keys, *others]:
        kind, options, strategy, *_ = {**OTHERS, **IN_KEYS}[name]
        namespace[name] = field(**options)
        namespace["__annotations__"][name] = Attr[kind]
        values[name] = strategy

    def parts(names: list[str]) -> list[Any]:
        return [draw(st.sampled_from(IN_KEYS[name][3]))(namespace[name]) for name in names]

    cut = draw(st.integers(0, len(in_keys) - 1))
    namespace["primary"] = Key(
        literal, *parts(in_keys[:cut]), separator=draw(st.sampled_from(SEPARATORS))
    ).sort(*draw(st.sampled_from([[literal], ["S"], []])) or [literal], *parts(in_keys[cut:]))
    if draw(st.booleans()):
        indexed = draw(st.permutations(in_keys))
        namespace["by_index"] = Index("GSI1", literal, *parts(indexed[:1])).sort(
            "I", *parts(indexed[1:]), separator=draw(st.sampled_from(SEPARATORS))
        )
    return type(literal.title(), (Entity,), namespace, table=table), values  # type: ignore[call-overload]


@settings(
    max_examples=examples(90),
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
@given(data=st.data())
def test_the_inferred_module_fits_every_item(data: st.DataObject) -> None:
    table = Table("random", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
    declared = []
    for literal in data.draw(
        st.sampled_from([["USER"], ["USER", "ORDER"], ["user", "order", "item"]])
    ):
        try:
            declared.append(data.draw(entities(table, literal)))
        except IsotoneError:  # a key that the model refuses
            continue
    is_foreign = data.draw(st.booleans())
    lost = data.draw(st.sampled_from([(), ("_type",), ("_type", "at", "number", "text")]))
    with isotone.connect(":memory:", check_keys=not is_foreign, report=None) as store:
        store.create_tables(table)
        for entity, strategies in declared:
            rows = st.fixed_dictionaries(strategies)
            for row in data.draw(st.lists(rows, min_size=1, max_size=6)):
                try:
                    store.put(entity(**row))
                except IsotoneError:  # a value that its key cannot hold
                    continue
        strip(store, lost)
        items = store.backend.execute("Scan", {"TableName": "random"})["Items"]
        note(repr(items))
        inferred = isotone.infer(store, "random", verify=True)
        note(inferred.source)
        assert inferred.unmodelled == 0
        assert inferred.unexpected == ()


def strip(store: isotone.Store, names: tuple[str, ...]) -> None:
    """Remove attributes from all items but the library's own, as if another program had written them."""
    for item in store.backend.execute("Scan", {"TableName": "random"})["Items"]:
        if item["PK"]["S"] != "_keys":
            kept = {name: value for name, value in item.items() if name not in names}
            store.backend.execute("PutItem", {"TableName": "random", "Item": kept})
