"""Modules that begin with access patterns: each runs as it is, is in form, and answers every pattern in its order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone.advisor.lint import lint
from isotone.design import sheet_of
from isotone.errors import UsageError
from isotone.inference import BegunModule, PatternAnswer, begin, read_patterns

SHOP = """\
Customer(customer_id; name, email, since: date)
Order(customer_id, number: int <= 99_999; status: OPEN|PAID|SHIPPED, placed_at: datetime,
      total: decimal <= 9_999.99, note?)
Line(customer_id, number: int <= 99_999, line: int <= 999; sku, amount: int)
Membership(team, user; role: ADMIN|GUEST)

Order of Customer by number desc
Order of Customer by placed_at desc
Order of status by placed_at
Order of status by placed_at desc
Order by total desc
Customer of email
Line of Order by line
Line of sku by customer_id, number
Membership of team by user
Membership of user by team
"""
KINDS = (
    *("text", "int <= 999", "decimal <= 999.99", "decimal <= 999.00", "bool", "datetime", "date"),
    *("uuid", "ulid", "OPEN|PAID|X-1"),
)


def loaded(source: str) -> ModuleType:
    """The module of a source, whose classes find it by its name."""
    module = ModuleType("begun")
    sys.modules["begun"] = module
    exec(compile(source, "begun.py", "exec"), vars(module))
    return module


def table_in(module: ModuleType) -> isotone.Table:
    return next(each for each in vars(module).values() if isinstance(each, isotone.Table))


@pytest.fixture
def shop() -> BegunModule:
    return begin(read_patterns(SHOP), "shop")


def test_keys_follow_from_the_patterns(shop: BegunModule) -> None:
    for declared in (
        'primary = Key("CUSTOMER", customer_id).sort("CUSTOMER")',
        'by_email = Index("GSI1", "CUSTOMER", email).sort(customer_id)',
        'primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))',
        'by_customer = Index("GSI1", "ORDER", customer_id).sort(desc(placed_at))',
        'by_status = Index("GSI2", "ORDER", status).sort(placed_at)',
        'by_total = Index("GSI3", "ORDER").sort(desc(total))',
        'primary = Key("ORDER", customer_id, number).sort("LINE", line)',
        'by_sku = Index("GSI1", "LINE", sku).sort(customer_id, number)',
        'primary = Key("MEMBERSHIP", team).sort(user)',
        'by_user = Index("GSI1", "MEMBERSHIP", user).sort(team)',
        'total: Attr[Decimal] = field(max=Decimal("9999.99"), scale=2)',
        "note: Attr[str | None] = field(default=None)",
        "# Order of status by placed_at\n",
    ):
        assert f"    {declared}" in shop.source, declared
    assert [(each.key, each.direction) for each in shop.answers] == [
        ("Order.primary", ""),
        ("Order.by_customer", ""),
        ("Order.by_status", ""),
        ("Order.by_status", ".descending()"),
        ("Order.by_total", ""),
        ("Customer.by_email", ""),
        ("Line.primary", ""),
        ("Line.by_sku", ""),
        ("Membership.primary", ""),
        ("Membership.by_user", ""),
    ]


def test_the_end_of_a_descending_key_is_read_ascending() -> None:
    found = begin(read_patterns("Order(a; b)\nOrder by b desc\nOrder by b"), "shop")
    assert [each.direction for each in found.answers] == ["", ".ascending()"]
    assert "- Order by b: Order.by_b of all, with .ascending()\n" in found.source


def test_a_pattern_of_the_whole_key_is_its_get() -> None:
    found = begin(read_patterns("Order(a, b;)\nOrder of b, a"), "shop")
    assert found.answers[0].key == "Order.get"
    assert "indexes=" not in found.source


def test_a_pattern_that_begins_like_another_needs_no_index_of_its_own() -> None:
    text = "Order(id; s, a, b)\nOrder of s by a, b\nOrder of s by a\nOrder of s\nOrder of s by b"
    found = begin(read_patterns(text), "shop")
    keys = [each.key for each in found.answers]
    assert keys == ["Order.by_s", "Order.by_s", "Order.by_s", "Order.by_s_and_b"]


def test_too_many_indexes_are_refused_with_the_line() -> None:
    fields = [f"f{number}" for number in range(21)]
    lines = [f"Order(id; {', '.join(fields)})", *(f"Order of {each}" for each in fields)]
    with pytest.raises(UsageError, match="line 22: Order would need more than 20 indexes"):
        begin(read_patterns("\n".join(lines)), "shop")


def test_the_module_is_in_form_and_of_the_declared_types(shop: BegunModule, tmp_path: Path) -> None:
    path = tmp_path / "shop.py"
    path.write_text(shop.source)
    ruff = Path(sys.executable).with_name("ruff")
    for words in (
        ["format", "--check", "--line-length", "88"],
        ["check", "--select", "E,F,I,UP,W"],
    ):
        ran = subprocess.run([ruff, *words, "--isolated", path], capture_output=True, check=False)
        assert ran.returncode == 0, ran.stdout
    module = loaded(shop.source)
    fields = module.Order.__schema__.fields
    assert fields["total"].options.scale == 2
    assert lint(table_in(module)).findings  # the e-mail as it is typed, and one list of all orders
    assert {each.level for each in lint(table_in(module)).findings} <= {"warning", "note"}


# Any file of patterns


@st.composite
def pattern_files(draw: Any) -> str:
    """A file with parents, children, and patterns over fields of all types."""
    lines, entities = [], {}
    kinds: dict[str, str] = {}
    for name in ("Aa", "Bb", "Cc")[: draw(st.integers(1, 3))]:
        parent = draw(st.sampled_from([None, *entities]))
        own = [f"{name.lower()}{number}" for number in range(draw(st.integers(1, 2)))]
        identity = [*(entities[parent][0] if parent else ()), *own]
        others = [f"{name.lower()}_x{number}" for number in range(draw(st.integers(0, 3)))]
        for each in (*own, *others):
            kinds[each] = draw(st.sampled_from(KINDS))
        # a key whose values are few makes few items
        kinds[own[0]] = draw(st.sampled_from(["text", "int <= 9_999", "uuid", "datetime"]))
        entities[name] = (identity, others)
        typed = [[f"{each}: {kinds[each]}" for each in part] for part in (identity, others)]
        lines.append(f"{name}({', '.join(typed[0])}; {', '.join(typed[1])})")
    seen = set()
    for name in draw(st.lists(st.sampled_from([*entities]), max_size=5)):
        fields = draw(st.permutations([each for part in entities[name] for each in part]))
        equal = draw(st.integers(0, min(2, len(fields))))
        order = draw(st.integers(0 if equal else 1, min(2, max(len(fields) - equal, 0)) or 1))
        by = [each + draw(st.sampled_from(["", " desc"])) for each in fields[equal : equal + order]]
        pattern = (name, frozenset(fields[:equal]), tuple(by))
        if (equal or by) and pattern not in seen and not pattern[1] > {*entities[name][0]}:
            seen.add(pattern)
            of_part = f" of {', '.join(fields[:equal])}" if equal else ""
            by_part = f" by {', '.join(by)}" if by else ""
            lines.append(f"{name}{of_part}{by_part}")
    return "\n".join(lines)


def naive(
    entities: list[Any], answer: PatternAnswer
) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
    """The values of the ordering fields, in order, for each group of items."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for entity in entities:
        values = tuple(getattr(entity, name) for name in answer.pattern.equal)
        groups.setdefault(values, []).append(entity)
    found = {}
    for values, items in groups.items():
        for each in reversed(answer.pattern.order):
            items.sort(key=lambda item: getattr(item, each.field), reverse=each.descending)
        found[values] = [
            tuple(getattr(item, each.field) for each in answer.pattern.order) for item in items
        ]
    return found


def read(store: isotone.Store, module: ModuleType, answer: PatternAnswer, values: Any) -> list[Any]:
    """The same by the key that answers the pattern: a range of it, without a filter."""
    entity = getattr(module, answer.pattern.entity)
    conditions = [
        getattr(entity, name) == value
        for name, value in zip(answer.pattern.equal, values, strict=True)
    ]
    key = answer.key.partition(".")[2]
    if key == "get":
        fields = dict(zip(answer.pattern.equal, values, strict=True))
        return [store.get(entity, **fields)]
    query = getattr(entity, key).where(*conditions)
    if answer.direction:
        query = getattr(query, answer.direction.strip(".()"))()
    assert "FilterExpression" not in query.request()
    return store.all(query)


@settings(max_examples=examples(40))
@given(pattern_files())
def test_every_pattern_of_any_file_is_answered(text: str) -> None:
    begun = begin(read_patterns(text), "shop")
    module = loaded(begun.source)
    table = table_in(module)
    assert {each.level for each in lint(table).findings} <= {"warning", "note"}
    assert sheet_of(table).rows
    with isotone.connect(":memory:") as store:
        names = [schema.entity.__name__ for schema in table.entities.values()]
        made = isotone.seed(store, table, items=dict.fromkeys(names, 12), seed=1)
        assert set(made.items.values()) == {12}
        assert not store.verify(table).findings
        for answer in begun.answers:
            entity = getattr(module, answer.pattern.entity)
            stored = list(store.scan(entity.primary.scan()))
            for values, expected in naive(stored, answer).items():
                found = read(store, module, answer, values)
                order = [each.field for each in answer.pattern.order]
                assert [tuple(getattr(each, name) for name in order) for each in found] == expected
