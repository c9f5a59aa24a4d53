"""What the cookbook promises beyond its blocks: what a recipe costs, and a rename that is completed after an interruption."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.docs.pages import page

import isotone

COOKBOOK = page("docs/cookbook.md")
TASKS = 60  # three transactions


class Interrupted(Exception):
    """The process ended."""


class Interrupting:
    """A backend that ends after some requests."""

    def __init__(self, backend: Any, requests: int) -> None:
        self._backend = backend
        self._left = requests

    def execute(self, operation: str, request: dict[str, Any]) -> Any:
        if self._left == 0:
            raise Interrupted
        self._left -= 1
        return self._backend.execute(operation, request)


WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
READS = ("GetItem", "Query")


class Spent(NamedTuple):
    """What one request cost. A refused write reports no units."""

    operation: str
    table: str
    units: float


class Meter:
    """A backend that asks for the cost of each read and write."""

    def __init__(self, backend: Any, spent: list[Spent]) -> None:
        self._backend = backend
        self._spent = spent

    def execute(self, operation: str, request: dict[str, Any]) -> Any:
        if operation not in WRITES + READS:
            return self._backend.execute(operation, request)
        table = request.get("TableName", "")
        try:
            response = self._backend.execute(
                operation, {**request, "ReturnConsumedCapacity": "TOTAL"}
            )
        except isotone.errors.ApiError:
            self._spent.append(Spent(operation, table, 0))
            raise
        consumed = response["ConsumedCapacity"]
        tables = consumed if isinstance(consumed, list) else [consumed]
        units = sum(each["CapacityUnits"] for each in tables)
        self._spent.append(Spent(operation, table, units))
        return response


class Recipes(dict[str, Any]):
    """The names of the page, and what its stores have spent."""

    spent: list[Spent]

    def cost(self, call: Callable[[Any], object]) -> tuple[float, float]:
        """The read and the write units of a call."""
        self.spent.clear()
        call(self)
        return self._units(READS), self._units(WRITES)

    def _units(self, operations: tuple[str, ...]) -> float:
        return sum(each.units for each in self.spent if each.operation in operations)

    def __getattr__(self, name: str) -> Any:
        return self[name]


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipes:
    monkeypatch.chdir(tmp_path)
    spent: list[Spent] = []
    connect = isotone.connect
    monkeypatch.setattr(
        isotone, "connect", lambda backend, **options: connect(Meter(backend, spent), **options)
    )
    namespace = Recipes({"__name__": "__main__"})
    namespace.spent = spent
    for block in COOKBOOK.blocks("python"):
        exec(compile(block.text, "docs/cookbook.md", "exec"), namespace)
    monkeypatch.undo()
    return namespace


def change_order(**values: object) -> Callable[[Any], object]:
    key = {"customer": "bob", "number": 1}
    return lambda it: it.store.update(it.Order, *it.Order.changes(**values), **key)


def once(key: str) -> Callable[[Any], object]:
    return lambda it: it.requests.once(key, lambda: 1)


def page_of_long_topics(it: Any) -> None:
    """Nine topics of a bit more than 1 KB: between 8 and 12 KB."""
    assert len(it.store.page(it.Topic.find(it.Topic.forum == "long"), size=9)) == 9


def budget(it: Any) -> Any:
    return it.Document.primary.at(owner="ann", document_id="1")


# The sentence of a recipe, what it speaks of, and its read and write units.
COSTS: list[tuple[str, str, Callable[[Any], object], tuple[float, float]]] = [
    (
        "Cursors in a web API",
        "0.5 read units for each 4 KB of a page.",
        page_of_long_topics,
        (1.5, 0),
    ),
    (
        "Optimistic locking with an ETag",
        "Two write units: the item and its index entry.",
        change_order(total=3),
        (0, 2),
    ),
    (
        "Optimistic locking with an ETag",
        "If the entry moves, as when the status changes, three; and one read unit, because its key needs "
        "`placed_at`, which the patch does not have.",
        change_order(status="SHIPPED"),
        (1, 3),
    ),
    (
        "Pages with a total",
        "Four write units to open a topic: two items, doubled by the transaction.",
        lambda it: it.open_topic(it.Topic(forum="python", number=99, title="Last")),
        (0, 4),
    ),
    (
        "Pages with a total",
        "Half a read unit for the total; `store.count(query)` would cost as much as reading all topics.",
        lambda it: it.store.get(it.Forum, name="python"),
        (0.5, 0),
    ),
    (
        "Transfer between two items",
        "Four write units: two items, doubled by the transaction.",
        lambda it: it.transfer("2", "1", Decimal(1)),
        (0, 4),
    ),
    (
        "Soft delete",
        "Three write units to delete or to restore: the item, and an entry in each index.",
        lambda it: it.delete(budget(it)),
        (0, 3),
    ),
    (
        "Soft delete",
        "One read unit to restore, for the title in the key of its entry.",
        lambda it: it.restore(it.Document.primary.at(owner="ann", document_id="0")),
        (1, 3),
    ),
    (
        "Many to many",
        "Two write units per pair.",
        lambda it: it.store.put(it.Membership(user="cid", group="web")),
        (0, 2),
    ),
    (
        "Many to many",
        "0.5 read units for each 4 KB of a list.",
        lambda it: it.store.all(it.ops),
        (0.5, 0),
    ),
    (
        "A tree of folders",
        "Two write units per folder.",
        lambda it: it.store.put(it.Folder(drive="d", path="/zen")),
        (0, 2),
    ),
    (
        "A tree of folders",
        "0.5 read units for each 4 KB of a listing.",
        lambda it: it.store.all(it.inside),
        (0.5, 0),
    ),
    (
        "Unique e-mail address",
        "Four write units to create, instead of one: two items in a transaction.",
        lambda it: it.store.create(it.User(user_id="u-3", email="cid@example.com")),
        (0, 4),
    ),
    (
        "Unique e-mail address",
        "Two read units for a lookup: two consistent reads.",
        lambda it: it.store.get(it.User, email="ann@lee.example"),
        (2, 0),
    ),
    ("Counters", "One write unit per booking.", lambda it: it.book("IS-2", 1), (0, 1)),
    ("Rate limit", "One write unit per call.", lambda it: it.may_call("bob"), (0, 1)),
    (
        "Sessions that expire",
        "Half a read unit per request.",
        lambda it: it.store.get(it.Session, session_id=it.latest.session_id),
        (0.5, 0),
    ),
    (
        "Sessions that expire",
        "Two write units to extend a session.",
        lambda it: it.store.update(it.latest, it.Session.ends_at.set(it.in_half_an_hour())),
        (0, 2),
    ),
    (
        "A queue in a table",
        "Two write units to put a message, three to claim it and two to acknowledge it, with its index "
        "entry.",
        lambda it: (it.mails.put("one"), it.mails.acknowledge(it.mails.claim()[0])),
        (0.5, 2 + 3 + 2),
    ),
    (
        "A queue in a table",
        "Six to put it with a `token`, in a transaction.",
        lambda it: it.mails.put("two", token="t-2"),
        (0, 6),
    ),
]


def cost_of(recipe: str) -> str:
    """The answer about costs, on one line; "" if a recipe has none."""
    found = re.search(r"^- \*\*Cost\.\*\* (.*?)^- ", COOKBOOK.section(recipe), re.M | re.S)
    return " ".join(found[1].split()) if found else ""


def prepare(it: Recipes) -> None:
    """What the recipes of `COSTS` work on."""
    it.store.put_many(
        it.Topic(forum="long", number=number, title="x" * 1_000) for number in range(1, 10)
    )
    it.store.put(it.Flight(code="IS-2", free=3))
    it.store.put(it.Document(owner="ann", document_id="0", title="Plan"))
    it.delete(it.Document.primary.at(owner="ann", document_id="0"))
    it["latest"] = it.store.put(it.Session(user="bob", ends_at=it.in_half_an_hour()))
    it.clock.advance(1)


def test_recipes_cost_what_they_say(recipes: Recipes) -> None:
    prepare(recipes)
    for recipe, sentence, call, units in COSTS:
        assert sentence in cost_of(recipe), recipe
        assert recipes.cost(call) == units, f"{recipe}: {sentence}"


def test_recipes_make_as_many_requests_as_they_say(recipes: Recipes) -> None:
    def operations(call: Callable[[Any], object]) -> list[str]:
        recipes.cost(call)
        return [each.operation for each in recipes.spent]

    assert "Two writes per new request." in cost_of("Idempotent POST")
    assert operations(once("k-2")) == ["PutItem", "PutItem"]
    assert "One, which is refused, per repetition." in cost_of("Idempotent POST")
    assert operations(once("k-2")) == ["PutItem"]

    assert "The first call after the minute writes twice" in cost_of("Rate limit")
    recipes.may_call("dan")
    recipes.clock.advance(61)
    assert operations(lambda it: it.may_call("dan")) == ["UpdateItem", "PutItem"]

    assert "`put_many`, 25 per request" in cost_of("JSON in and out")
    folders = [recipes.Folder(drive="e", path=f"/{number}") for number in range(50)]
    assert operations(lambda it: it.store.put_many(folders)) == ["BatchWriteItem"] * 2


def test_a_task_that_moves_costs_as_documented(recipes: Recipes) -> None:
    said = cost_of("Move children with their parent")
    assert "Four write units per task (a delete and a put, doubled by the transaction)" in said
    assert "and one read unit. 25 tasks are 25 reads and one transaction." in said
    recipes.store.put(recipes.Board(name="old"))
    for number in range(25):
        recipes.add_task(recipes.Task(board="old", number=number, title=""))
    recipes.cost(lambda it: it.rename("old", "new"))
    gets = [each.units for each in recipes.spent if each.operation == "GetItem"]
    transactions = [each.units for each in recipes.spent if each.operation == "TransactWriteItems"]
    assert gets[1:] == [1] * 25  # after the board
    assert transactions[1:] == [4 * 25]  # after the new board


def test_an_entry_of_the_audit_trail_costs_as_documented(recipes: Recipes) -> None:
    assert "One write unit per entry." in cost_of("Audit trail")
    recipes.store.update(
        recipes.Contract, *recipes.Contract.changes(price=80, changed_by="cid"), number=1
    )
    recipes.cost(lambda it: it.auditor.run(it.store, until_idle=True))
    assert [each.units for each in recipes.spent if each.table == "audit"] == [1]


def test_no_figure_is_without_a_measurement() -> None:
    measured = [sentence for _, sentence, _, _ in COSTS] + [
        "Two writes per new request. One, which is refused, per repetition.",
        "Entities without a `version()` can be written by `put_many`, 25 per request.",
        "Four write units per task (a delete and a put, doubled by the transaction) and one read unit. "
        "25 tasks are 25 reads and one transaction.",
        "One write unit per entry.",
        "in one request or more for each.",
    ]
    number = r"\b(\d+|half|one|two|three|four|five|six|seven|eight|nine|ten)\b"
    recipes = re.findall(r"^## (.+)$", COOKBOOK.prose, re.M)
    assert sum(bool(cost_of(recipe)) for recipe in recipes) == len(recipes) - 1  # but "Elsewhere"
    for recipe in recipes:
        left = cost_of(recipe)
        for sentence in measured:
            left = left.replace(sentence, "")
        assert not re.search(number, left, re.I), f"{recipe}: {left}"


def test_an_interrupted_rename_is_completed(recipes: Recipes) -> None:
    store, board_class, task_class = recipes["store"], recipes["Board"], recipes["Task"]

    def tasks_of(board: str) -> int:
        found: int = store.count(task_class.primary.where(task_class.board == board))
        return found

    interrupted = 0
    for requests in range(0, 90, 3):
        old, new = f"old-{requests}", f"new-{requests}"
        store.put(board_class(name=old))
        for number in range(TASKS):
            recipes["add_task"](task_class(board=old, number=number, title=""))
        recipes["store"] = isotone.connect(Interrupting(store.backend, requests), check_keys=False)
        try:
            recipes["rename"](old, new)
        except Interrupted:
            interrupted += 1
        assert tasks_of(old) + tasks_of(new) == TASKS

        recipes["store"] = store
        recipes["rename"](old, new)
        assert (tasks_of(old), tasks_of(new)) == (0, TASKS)
        assert store.get(board_class, name=old) is None
        assert store.get(board_class, name=new).moving_to is None
    assert 10 < interrupted < 30
