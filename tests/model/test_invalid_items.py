"""Items that are not what their entity declares: each read says which, and can go on after them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pydantic
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    KSUID,
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Store,
    Table,
    computed,
    created,
    expires,
    field,
    upgrade,
    version,
)
from isotone.errors import ApiError, ConditionFailed, InvalidItem, UsageError
from isotone.values.json import to_wire

shop = Table(
    "shop",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK", projection="KEYS_ONLY"),
    },
    stream="NEW_AND_OLD_IMAGES",
)


class Size(Enum):
    SMALL = "S"
    LARGE = "L"


class Rank(Enum):
    FIRST = 1
    SECOND = 2


class Place(pydantic.BaseModel):
    street: str
    number: int


class Shop(Entity, table=shop):
    shop_id: Attr[str] = field()
    primary = Key("SHOP", shop_id).sort("SHOP")


class Article(Entity, table=shop):
    """Every kind of type that a field may have."""

    shop_id: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=None)
    title: Attr[str] = field(name="t")
    price: Attr[Decimal] = field(default=Decimal(1))
    weight: Attr[float | None] = field(default=None)
    sold: Attr[int] = field(default=0)
    state: Attr[Literal["NEW", "OLD"]] = field(default="NEW")
    stars: Attr[Literal[1, 2, 3]] = field(default=1)
    size: Attr[Size] = field(default=Size.SMALL)
    rank: Attr[Rank] = field(default=Rank.FIRST)
    is_out: Attr[bool] = field(default=False)
    made: Attr[datetime | None] = created()
    on: Attr[date | None] = field(default=None)
    at: Attr[time | None] = field(default=None)
    span: Attr[timedelta | None] = field(default=None)
    uid: Attr[UUID | None] = field(default=None)
    ksuid: Attr[KSUID | None] = field(default=None)
    raw: Attr[bytes] = field(default=b"")
    names: Attr[list[str]] = field(default_factory=list)
    counts: Attr[dict[str, int]] = field(default_factory=dict)
    tags: Attr[set[str]] = field(default_factory=set)
    numbers: Attr[frozenset[int]] = field(default_factory=frozenset)
    place: Attr[Place | None] = field(default=None)
    either: Attr[int | str] = field(default=0)
    revision: Attr[int] = version()
    ends: Attr[datetime | None] = expires(default=None)
    label: Attr[str] = computed(lambda article: f"{article.title.upper()} {article.price:.2f}")

    primary = Shop.primary.children(shop_id).after("ARTICLE", number)
    by_state = Index("GSI1", "SHOP", shop_id).sort("STATE", state, number)
    by_size = Index("GSI2", "SHOP", shop_id).sort("SIZE", size, number)


OF_ONE = Article.shop_id == "a"
SCALARS = st.one_of(
    st.sampled_from(
        [None, True, False, "", "abc", "2020-01-01", "yesterday", "NEW", "L", "S", "1.5"]
    ),
    st.sampled_from([0, 1, 2, -3, Decimal("1.5"), 10**37, Decimal("1e125"), b"", b"\xff"]),
    st.sampled_from([{"a", "b"}, {1, 2}, {b"x"}, {"street": "x", "number": 3}, {"street": "x"}]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
ATTRIBUTES = {name: each.attribute for name, each in Article.__schema__.fields.items()}
# Without any of the fields that the keys hold, so that those of the items are what they are.
WRONG = st.dictionaries(
    st.sampled_from(sorted(set(ATTRIBUTES.values()) - {"shop_id", "number"})),
    st.none() | VALUES.map(to_wire),
    max_size=3,
)  # fmt: skip


def put(store: Store, item: dict[str, Any]) -> None:
    store.backend.execute("PutItem", {"TableName": "shop", "Item": item})


def fill(store: Store, wrong: list[dict[str, Any]]) -> None:
    """Articles from 0 on, each with some attributes replaced; those that are None are left out."""
    store.put(Shop(shop_id="a"))
    for number, replaced in enumerate(wrong):
        article = Article(shop_id="a", number=number, title="x")
        article.__dict__["revision"] = 1
        article.__dict__["made"] = datetime(2026, 1, 1, tzinfo=UTC)
        item = {**Article.__schema__.to_item(article.__dict__), **replaced}
        put(store, {name: value for name, value in item.items() if value is not None})


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(shop)
        yield store


READS_BY_KEY: list[Callable[..., Any]] = [
    lambda store, **key: store.get(Article, **key),
    lambda store, **key: store.get_many(Article, [key])[0],
    lambda store, **key: store.get_together((Article, key))[0],
    lambda store, **key: store.transaction().get(Article, **key),
]
WRITES: list[Callable[..., Any]] = [
    lambda store, **key: store.update(Article, Article.names.set(["y"]), **key),
    lambda store, **key: store.upsert(Article, Article.title.set("z"), Article.sold.set(1), **key),
    lambda store, **key: store.update(Article, Article.state.set("OLD"), **key),
    lambda store, **key: store.move(Article, Article.number.set(key["number"]), **key),
    lambda store, **key: store.delete(Article, when=Article.names == ["n"], **key),
    lambda store, **key: store.delete(Article, **key),
]


def attempt(call: Callable[..., Any], *args: Any, **key: Any) -> tuple[Any, Any]:
    """What a call returns, or the error of an invalid item; other errors are raised."""
    try:
        return call(*args, **key), None
    except InvalidItem as error:
        return None, error


def check_valid(article: Article) -> None:
    """Every field has a value of its type: pydantic agrees, without converting it."""
    values = article.to_dict()
    for name, value in values.items():
        assert Article.__schema__.validator.one(name, value) == value
    for name in ("state", "stars", "size", "rank", "is_out", "sold"):
        if name in values:
            assert type(values[name]) is type(
                Article(shop_id="a", number=1, title="x").to_dict()[name]
            )


def check_error(error: InvalidItem, invalid: dict[str, Any]) -> None:
    assert error.table == "shop"
    assert error.entity == "Article"
    assert error.key["PK"] == "SHOP#a"
    assert error.field in ATTRIBUTES
    assert ATTRIBUTES[error.field] in invalid or error.field == "label"
    assert repr(error.field) in str(error)
    if error.found is not None:
        assert error.found == invalid[ATTRIBUTES[error.field]]
        assert str(error.declared) in str(error)


@settings(max_examples=examples(150), deadline=None)
@given(wrong=st.lists(WRONG, min_size=1, max_size=8), size=st.integers(1, 4))
@example(wrong=[{"sold": {"S": "abc"}}, {}, {"price": {"NULL": True}}], size=1)
@example(wrong=[{"state": {"S": "GONE"}}, {"stars": {"N": "4"}}], size=1)
@example(wrong=[{"on": {"S": "yesterday"}}, {"t": None}, {"place": {"M": {}}}], size=2)
@example(wrong=[{"t": {"N": "1"}, "label": None}, {"ends": {"S": "x"}}], size=2)
@example(wrong=[{"_expires": {"N": "1.5"}}], size=1)
def test_every_read_gives_a_valid_entity_or_says_which_field_is_not(
    wrong: list[dict[str, Any]], size: int
) -> None:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(shop)
        fill(store, wrong)
        invalid: dict[int, InvalidItem] = {}
        absent: set[int] = set()
        for number, replaced in enumerate(wrong):
            for get in READS_BY_KEY:
                article, error = attempt(get, store, shop_id="a", number=number)
                if error is not None:
                    check_error(error, replaced)
                    assert error.key["SK"] == f"~ARTICLE#{number:03}"
                    assert invalid.setdefault(number, error).field == error.field
                elif article is None:
                    assert "N" in (replaced.get("_expires") or {})
                    absent.add(number)
                else:
                    assert number not in invalid
                    check_valid(article)
        there = [number for number in range(len(wrong)) if number not in absent]
        valid = [number for number in there if number not in invalid]
        for query in (
            Article.primary.where(OF_ONE),
            Article.primary.where(OF_ONE).reversed(),
            Article.primary.where(OF_ONE).filter(Article.shop_id.exists()),
            Article.primary.scan(),
        ):
            check_query(store, query, valid, {n: invalid[n] for n in there if n in invalid}, size)
        for query in (
            Article.by_state.where(OF_ONE),
            Article.by_size.where(OF_ONE),
            Article.primary.where(OF_ONE).select(Article.title, Article.sold, Article.label),
        ):
            errors: list[InvalidItem] = []
            for article in store.all(query.on_invalid(errors.append)):
                check_valid(article)
            for error in errors:
                check_error(error, wrong[int(error.key["SK"][-3:])])
        family = store.family(
            Shop.primary.with_children(Article.primary)
            .where(Shop.shop_id == "a")
            .on_invalid("collect")
        )
        assert [child.number for child in family.children] == valid
        assert len(family.invalid) == family.stats.invalid == len(there) - len(valid)
        check_changes(store, wrong, invalid)
        check_writes(store, wrong)


def check_query(
    store: Store, query: Any, valid: list[int], invalid: dict[int, InvalidItem], size: int
) -> None:
    """All reads of a query agree on what is valid, and pages go on after what is not."""
    errors: list[InvalidItem] = []
    found = [article.number for article in store.all(query.on_invalid(errors.append))]
    assert sorted(found) == valid
    assert sorted(fields(errors)) == sorted(fields(invalid.values()))
    skipping = query.on_invalid("skip")
    assert [article.number for article in store.iterate(skipping)] == found
    assert store.count(skipping) == len(valid)
    first = store.first(skipping)
    assert (None if first is None else first.number) == (found[0] if found else None)
    snapshot = store.load(query.on_invalid("collect"))
    assert [article.number for article in snapshot] == found
    assert fields(snapshot.invalid) == fields(errors)
    if isinstance(query, isotone.Scan):
        assert sorted(each.number for each in store.scan(skipping, segments=2)) == valid
    if invalid:
        for read in (store.all, store.load, lambda query: list(store.iterate(query))):
            with pytest.raises(InvalidItem):
                read(query)
    forward, collected, pages = [], [], []
    cursor = None
    for _ in range(len(valid) + len(invalid) + 2):
        page = store.page(query.on_invalid("collect"), size=size, cursor=cursor)
        assert page.stats.invalid == len(page.invalid)
        forward += [article.number for article in page.items]
        collected += fields(page.invalid)
        pages.append(page)
        cursor = page.cursor
        if cursor is None:
            break
        assert len(page.items) == size
    assert cursor is None
    assert forward == found
    assert collected == fields(errors)
    if isinstance(query, isotone.Scan):
        return
    backward: list[int] = []
    while page.previous is not None:
        page = store.page(query.on_invalid("collect"), size=size, cursor=page.previous)
        backward = [article.number for article in page.items] + backward
    assert backward == found[: len(found) - len(pages[-1].items)]


def fields(errors: Any) -> list[tuple[str, str]]:
    return [(error.key["SK"], error.field) for error in errors]


def check_changes(
    store: Store, wrong: list[dict[str, Any]], invalid: dict[int, InvalidItem]
) -> None:
    for event in store.changes(shop):
        if event.keys["SK"] == "SHOP":
            continue
        number = int(event.keys["SK"][-3:])
        after, error = attempt(lambda of: of.after, event)
        if error is None:
            assert number not in invalid
            check_valid(after)
        else:
            check_error(error, wrong[number])
            assert number not in invalid or error.field == invalid[number].field


def check_writes(store: Store, wrong: list[dict[str, Any]]) -> None:
    """A write that succeeds raises nothing; what it returns raises where it cannot be read."""
    for number, replaced in enumerate(wrong):
        for call in WRITES:
            before = stored(store, number)
            try:
                result = call(store, shop_id="a", number=number)
            except (InvalidItem, ApiError):
                assert stored(store, number) == before
            except ConditionFailed as refused:
                assert stored(store, number) == before
                check_readable(refused.current, replaced)
            else:
                check_readable(result, replaced)
        assert stored(store, number) is None


def check_readable(entity: Any, replaced: dict[str, Any]) -> None:
    """Each field has a valid value or raises `InvalidItem`."""
    if entity is None:
        return
    for name, attribute in ATTRIBUTES.items():
        _, error = attempt(getattr, entity, name)
        if error is not None:
            assert error.field == name
            assert attribute in replaced or name == "label"
            with pytest.raises(InvalidItem):
                entity.replace(title="y")
            with pytest.raises(InvalidItem):
                Article.__schema__.to_item(entity.__dict__)
    check_valid(entity)


def stored(store: Store, number: int) -> Any:
    key = Article.__schema__.primary_key({"shop_id": "a", "number": number})
    return store.backend.execute("GetItem", {"TableName": "shop", "Key": key}).get("Item")


# Examples


@pytest.fixture
def spoilt(store: Store) -> Store:
    """Nine articles, of which every third has a text as its price."""
    fill(store, [{"price": {"S": "abc"}} if number % 3 == 1 else {} for number in range(9)])
    return store


def test_the_error_names_the_item_the_field_and_what_is_wrong(spoilt: Store) -> None:
    with pytest.raises(InvalidItem) as raised:
        spoilt.get(Article, shop_id="a", number=4)
    error = raised.value
    assert not isinstance(error, UsageError)
    assert (error.table, error.entity, error.field) == ("shop", "Article", "price")
    assert (error.key, error.found) == ({"PK": "SHOP#a", "SK": "~ARTICLE#004"}, {"S": "abc"})
    assert error.declared == "Decimal"
    assert str(error) == (
        "Article {'PK': 'SHOP#a', 'SK': '~ARTICLE#004'} in table 'shop': field 'price' has {'S': 'abc'}, but is "
        "declared as Decimal; set the field with store.update, or declare the type that is stored; until then, "
        "query.on_invalid('skip') reads past the item"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.key, copy.found) == (str(error), error.key, error.found)


def test_a_page_raises_only_for_the_items_that_it_covers(spoilt: Store) -> None:
    query = Article.primary.where(OF_ONE).filter(
        Article.sold == 0
    )  # which reads more than it returns
    assert [article.number for article in spoilt.page(query, size=1)] == [0]
    assert spoilt.first(query) is not None
    assert len(spoilt.all(query.limit(1))) == 1
    with pytest.raises(InvalidItem):
        spoilt.page(query, size=2)


def test_the_pages_before_list_their_own_errors(spoilt: Store) -> None:
    query = Article.primary.where(OF_ONE).on_invalid("collect")
    first = spoilt.page(query, size=2)
    second = spoilt.page(query, size=2, cursor=first.cursor)
    third = spoilt.page(query, size=2, cursor=second.cursor)
    listed = [[error.key["SK"][-1] for error in page.invalid] for page in (first, second, third)]
    assert listed == [["1"], ["4"], ["7"]]
    back = spoilt.page(query, size=2, cursor=third.previous)
    assert [article.number for article in back] == [3, 5]
    assert [error.key["SK"][-1] for error in back.invalid] == ["4"]


def test_errors_are_collected_only_where_they_can_be_listed(spoilt: Store) -> None:
    query = Article.primary.where(OF_ONE).on_invalid("collect")
    for read in (spoilt.all, spoilt.first, spoilt.count, lambda query: list(spoilt.iterate(query))):
        with pytest.raises(
            UsageError, match=r"give it a function, such as on_invalid\(errors.append\)"
        ):
            read(query)
    with pytest.raises(
        UsageError, match=r"'ignore'.*give 'raise', 'skip', 'collect' or a function"
    ):
        query.on_invalid("ignore")  # type: ignore[arg-type]


def test_a_count_is_that_of_the_valid_items_where_invalid_ones_are_skipped(spoilt: Store) -> None:
    query = Article.primary.where(OF_ONE)
    assert spoilt.count(query) == 9
    assert spoilt.count(query.on_invalid("skip")) == len(spoilt.all(query.on_invalid("skip"))) == 6


def test_a_write_that_succeeded_raises_where_its_result_is_read(spoilt: Store) -> None:
    changed = spoilt.update(
        Article, Article.title.set("new"), Article.price.set(Decimal(2)), shop_id="a", number=1
    )
    assert (changed.title, changed.price, changed.label) == ("new", 2, "NEW 2.00")
    assert spoilt.get(Article, shop_id="a", number=1) == changed
    deleted = spoilt.delete(Article, shop_id="a", number=4)
    assert deleted is not None
    assert deleted.title == "x"
    with pytest.raises(InvalidItem, match="field 'price' has"):
        deleted.price  # noqa: B018 - reading it is what fails
    with pytest.raises(InvalidItem, match="field 'price' has"):
        spoilt.put(deleted)
    assert spoilt.get(Article, shop_id="a", number=4) is None
    assert "price" not in repr(deleted)


def test_a_write_that_needs_an_invalid_value_is_refused_before_it_is_made(spoilt: Store) -> None:
    before = stored(spoilt, 4)
    with pytest.raises(InvalidItem, match="field 'price' has"):  # for the label
        spoilt.update(Article, Article.title.set("new"), shop_id="a", number=4)
    with pytest.raises(InvalidItem, match="field 'price' has"):
        spoilt.move(Article, Article.number.set(5), shop_id="a", number=4)
    with pytest.raises(ConditionFailed) as refused:
        spoilt.delete(Article, shop_id="a", number=4, when=Article.title == "z")
    assert refused.value.current.title == "x"
    assert stored(spoilt, 4) == before


def test_none_is_read_back_where_the_library_sets_the_field(store: Store) -> None:
    class Lease(Entity, table=shop):
        name: Attr[str] = field()
        until: Attr[datetime] = expires(default=datetime(2126, 1, 1, tzinfo=UTC))
        primary = Key("LEASE", name).sort("LEASE")

    store.put(Lease.from_trusted({"name": "a", "until": None}))
    assert store.get(Lease, name="a").until is None  # type: ignore[union-attr]


def test_an_upgrade_that_fails_names_itself_and_the_item(store: Store) -> None:
    def split(item: dict[str, Any]) -> dict[str, Any]:
        first, last = item.pop("name").split()
        return {**item, "first": first, "last": last}

    class Person(Entity, table=shop, version=2):
        number: Attr[str] = field()
        first: Attr[str] = field()
        last: Attr[str] = field()
        primary = Key("PERSON", number).sort("PERSON")
        split_name = staticmethod(upgrade(1)(split))

    for number, name in (("1", "Ann Lee"), ("2", "Bo")):
        key = {"PK": f"PERSON#{number}", "SK": "PERSON", "_type": "Person"}
        item = {**key, "number": number, "name": name}
        put(store, {name: {"S": text} for name, text in item.items()})
    with pytest.raises(InvalidItem, match=r"'PERSON#2'.*@upgrade\(1\) split raised ValueError"):
        store.all(Person.primary.scan())
    (person,) = store.all(Person.primary.scan().on_invalid("skip"))
    assert person.last == "Lee"
    put(store, {**stored_at(store, "PERSON#1"), "_v": {"S": "x"}})
    with pytest.raises(InvalidItem, match=r"attribute '_v' has {'S': 'x'}, but is the version"):
        store.get(Person, number="1")
    deleted = store.delete(Person, number="2")
    with pytest.raises(InvalidItem, match="split raised ValueError"):
        deleted.first  # type: ignore[union-attr] # noqa: B018


def test_an_upgrade_that_returns_nothing_does_not_fail_a_write(store: Store) -> None:
    class Pet(Entity, table=shop, version=2):
        number: Attr[str] = field()
        name: Attr[str] = field()
        primary = Key("PET", number).sort("PET")
        forget = staticmethod(upgrade(1)(lambda item: None))

    item = {"PK": "PET#1", "SK": "PET", "_type": "Pet", "number": "1", "name": "Rex"}
    put(store, {name: {"S": text} for name, text in item.items()})
    with pytest.raises(UsageError, match="is not an item"):
        store.get(Pet, number="1")
    deleted = store.delete(Pet, number="1")
    with pytest.raises(InvalidItem, match="is not an item"):
        deleted.name  # type: ignore[union-attr] # noqa: B018 - reading it is what fails


def stored_at(store: Store, partition: str) -> Any:
    key = {"PK": {"S": partition}, "SK": {"S": "PERSON"}}
    return store.backend.execute("GetItem", {"TableName": "shop", "Key": key})["Item"]


def test_unique_values_that_are_invalid_have_no_markers(store: Store) -> None:
    class User(Entity, table=shop):
        name: Attr[str] = field()
        mail: Attr[str] = field(unique=True)
        age: Attr[int] = field(default=0)
        primary = Key("USER", name).sort("USER")

    def spoil(name: str, **attributes: Any) -> None:
        item = {
            "PK": {"S": f"USER#{name}"},
            "SK": {"S": "USER"},
            "_type": {"S": "User"},
            "name": {"S": name},
        }
        put(store, {**item, **attributes})

    spoil("ann", mail={"N": "1"}, age={"S": "old"})
    spoil("bo", mail={"S": "b@c"}, age={"S": "old"})
    changed = store.update(User, User.mail.set("a@b"), name="ann")
    assert changed.mail == "a@b"
    with pytest.raises(InvalidItem, match="'age' has"):
        changed.age  # noqa: B018
    store.update(User, User.mail.set("c@d"), name="bo")
    assert store.delete(User, name="bo").name == "bo"  # type: ignore[union-attr]
    put(store, {"PK": {"S": "_unique#User#mail#x"}, "SK": {"S": "_unique"}})  # by another program
    with pytest.raises(isotone.errors.NotUnique, match="'x' is taken"):
        store.create(User(name="cy", mail="x"))


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, "str"),
        (int | None, "int | None"),
        (Literal["A", 1], "Literal['A', 1]"),
        (list[dict[str, Size]], "list[dict[str, Size]]"),
    ],
)
def test_a_type_is_shown_as_it_is_declared(annotation: Any, text: str) -> None:
    from isotone.model.declaring.wire_types import type_text

    assert type_text(annotation) == text


def test_awaited_reads_skip_as_well() -> None:
    import asyncio

    async def read() -> list[int]:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(shop)
            for number in (1, 2):
                await store.put(Article(shop_id="a", number=number, title="x"))
            item = {
                **Article.__schema__.primary_key({"shop_id": "a", "number": 1}),
                "_type": {"S": "Article"},
            }
            await store.backend.execute("PutItem", {"TableName": "shop", "Item": item})
            scan = Article.primary.scan().on_invalid("skip")
            return [article.number async for article in store.scan(scan, segments=2)]

    assert asyncio.run(read()) == [2]


def test_an_event_raises_where_its_image_is_read(spoilt: Store) -> None:
    events = [event for event in spoilt.changes(shop) if event.keys["SK"] == "~ARTICLE#001"]
    with pytest.raises(InvalidItem, match="field 'price' has"):
        events[0].entity  # noqa: B018 - reading it is what fails
    assert (events[0].kind, events[0].schema) == ("inserted", Article.__schema__)
