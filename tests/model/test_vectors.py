"""Vectors of entities, and searches for the nearest, against a search that compares all."""

from __future__ import annotations

import asyncio
import math
import pickle
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import START, Desk

import isotone
from isotone import (
    Attr,
    Capabilities,
    Entity,
    Global,
    Index,
    Key,
    Neighbor,
    Store,
    Table,
    Vector,
    VectorIndex,
    expires,
    field,
    upgrade,
    vector,
)
from isotone.errors import (
    InvalidEntity,
    InvalidItem,
    TableDiffers,
    UnknownOperationException,
    Unsupported,
    UsageError,
)
from isotone.server import running_server

library = Table("library", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Doc(Entity, table=library):
    tenant: Attr[str] = field()
    doc_id: Attr[str] = field()
    language: Attr[str | None] = field(default=None)
    year: Attr[int] = field(default=2000)
    title: Attr[str] = field(default="-")
    tags: Attr[set[str]] = field(default_factory=set)
    embedding: Attr[Vector | None] = vector(3, default=None)

    primary = Key("TENANT", tenant).sort("DOC", doc_id)
    by_title = Index("GSI1", "TENANT", tenant).sort(title)
    by_embedding = VectorIndex(embedding, partition=tenant, filters=(language, year))
    by_distance = VectorIndex(embedding, metric="euclidean", projection=(title,), name="distance")
    by_product = VectorIndex(embedding, metric="dot_product", projection="KEYS_ONLY")


class Picture(Entity, table=library):
    """Another entity in the same table, with vectors in the same attribute."""

    name: Attr[str] = field()
    embedding: Attr[Vector] = vector(3)

    primary = Key("PICTURE", name).sort("PICTURE")
    by_distance = VectorIndex(embedding, metric="euclidean", name="picture-distance")


def doc(doc_id: str, numbers: Sequence[float] | None, tenant: str = "a", **more: Any) -> Doc:
    embedding = None if numbers is None else Vector(numbers)
    return Doc(tenant=tenant, doc_id=doc_id, embedding=embedding, **more)


def ids(found: list[Neighbor[Doc]]) -> list[str]:
    return [neighbor.entity.doc_id for neighbor in found]


@pytest.fixture(params=["memory", "file", "http"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with isotone.open(":memory:") as database:
        if request.param == "http":
            with running_server(database) as url, isotone.connect(url) as made:
                made.create_tables(library)
                yield made
            return
    address = ":memory:" if request.param == "memory" else tmp_path / "file.db"
    with isotone.connect(address) as made:
        made.create_tables(library)
        yield made


# Searches


def test_the_nearest_come_first_with_their_scores(store: Store) -> None:
    store.put_many([doc("x", [1, 0, 0]), doc("y", [0, 1, 0]), doc("xy", [2, 2, 0]), doc("-", None)])
    store.put(doc("other", [1, 0, 0], tenant="b"))
    found = store.nearest(Doc.by_embedding(tenant="a"), [1, 0, 0])
    assert ids(found) == ["x", "xy", "y"]
    assert [round(score, 6) for _, score in found] == [0.0, round(1 - 1 / math.sqrt(2), 6), 1.0]
    assert ids(store.nearest(Doc.by_embedding(tenant="a"), Vector([0, 5, 0]), limit=1)) == ["y"]
    assert ids(store.nearest(Doc.by_embedding(tenant="b"), (1, 1, 1))) == ["other"]
    assert store.nearest(Doc.by_embedding(tenant="nobody"), [1, 0, 0]) == []
    assert ids(store.nearest(Doc.by_product, [1, 0.5, 0], limit=2)) in (
        ["xy", "x"],
        ["xy", "other"],
    )


def test_filters_narrow_a_search_down(store: Store) -> None:
    store.put_many(
        [
            doc("1", [1, 0, 0], language="en", year=2020),
            doc("2", [1, 0, 0], language="de", year=2020),
            doc("3", [1, 0, 0], year=2021),
        ]
    )
    search = Doc.by_embedding
    assert ids(store.nearest(search(tenant="a", language="en"), [1, 0, 0])) == ["1"]
    assert sorted(ids(store.nearest(search(tenant="a", year=2020), [1, 0, 0]))) == ["1", "2"]
    assert ids(store.nearest(search(tenant="a", year=2021, language="en"), [1, 0, 0])) == []
    conditions = (Doc.tenant == "a", Doc.year == 2021)
    assert ids(store.nearest(search.where(*conditions), [1, 0, 0])) == ["3"]


def test_what_is_returned_is_what_the_index_projects(store: Store) -> None:
    stored = doc("1", [1, 0.25, 0], title="Waltz", year=1925, tags={"dance"})
    store.put(stored)
    ((by_all, _),) = store.nearest(Doc.by_embedding(tenant="a"), [1, 0, 0])
    assert (by_all.title, by_all.tags, by_all.language) == ("Waltz", {"dance"}, None)
    with pytest.raises(AttributeError, match="read without its field 'embedding'"):
        _ = by_all.embedding
    with pytest.raises(UsageError, match="was read without its fields embedding"):
        store.put(by_all)  # which would lose the vector
    ((some, _),) = store.nearest(Doc.by_distance, [1, 0, 0])
    assert some.to_dict() == {"tenant": "a", "doc_id": "1", "title": "Waltz"}
    ((keys, _),) = store.nearest(Doc.by_product, [1, 0, 0])
    assert keys.to_dict() == {"tenant": "a", "doc_id": "1"}
    for search in (Doc.by_embedding(tenant="a"), Doc.by_distance, Doc.by_product):
        assert store.nearest(search, [1, 0, 0], whole=True)[0].entity == stored
    assert store.update(some, Doc.year.add(1)).year == 1926


def test_an_entity_finds_only_its_own_kind(store: Store) -> None:
    store.put(doc("1", [1, 0, 0]))
    store.put_many(
        Picture(name=str(number), embedding=Vector([1, number / 100, 0])) for number in range(20)
    )
    assert ids(store.nearest(Doc.by_distance, [1, 0, 0], limit=1)) == ["1"]
    found = store.nearest(Picture.by_distance, [1, 0.04, 0], limit=1)
    assert [neighbor.entity.name for neighbor in found] == ["4"]


@settings(max_examples=examples(40), deadline=None)
@given(
    data=st.data(),
    writes=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(0, 5),
            st.none() | st.tuples(*[st.integers(-3, 3)] * 3),
            st.sampled_from([None, "en", "de"]),
        ),
        max_size=25,
    ),
)
def test_searches_are_those_of_a_naive_one(data: st.DataObject, writes: list[Any]) -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(library)
        present: dict[tuple[str, str], Doc] = {}
        for tenant, number, numbers, language in writes:
            each = doc(str(number), numbers, tenant, language=language)
            if numbers is None and data.draw(st.booleans()):
                store.delete(Doc, tenant=tenant, doc_id=str(number))
                present.pop((tenant, str(number)), None)
            elif (tenant, str(number)) in present and numbers is not None:
                store.update(
                    each.__class__,
                    Doc.embedding.set(each.embedding),
                    Doc.language.set(language) if language else Doc.language.remove(),
                    tenant=tenant,
                    doc_id=str(number),
                )
                present[tenant, str(number)] = each
            else:
                store.put(each)
                present[tenant, str(number)] = each
        query = data.draw(st.tuples(*[st.integers(-3, 3)] * 3).filter(any))
        limit = data.draw(st.integers(1, 5))
        language = data.draw(st.sampled_from([None, "en", "de"]))
        for metric, search in (
            (cosine, Doc.by_embedding(tenant="a", **({"language": language} if language else {}))),
            (math.dist, Doc.by_distance()),
            (product, Doc.by_product()),
        ):
            among = [
                each
                for each in present.values()
                if each.embedding is not None
                and (metric is not cosine or each.tenant == "a")
                and (metric is not cosine or language in (None, each.language))
            ]
            expected = sorted(metric(each.embedding or (), query) for each in among)[:limit]
            found = store.nearest(search, query, limit=limit, whole=True)
            scores = [-score if metric is product else score for _, score in found]
            assert scores == pytest.approx(expected, abs=1e-5)
            for entity, _ in found:
                assert present[entity.tenant, entity.doc_id] == entity


def cosine(one: Sequence[float], two: Sequence[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*two)
    return 1 - sum(map(float.__mul__, map(float, one), map(float, two))) / lengths if lengths else 1


def product(one: Sequence[float], two: Sequence[float]) -> float:
    return -sum(map(float.__mul__, map(float, one), map(float, two)))


def test_a_search_has_a_limit(desk: Desk) -> None:
    for limit in (0, 101, 1.5, True):
        with pytest.raises(UsageError, match="1 to 100"):
            desk.store.nearest(Doc.by_distance, [1, 2, 3], limit=limit)  # type: ignore[arg-type] # a wrong one


def test_an_async_store_searches() -> None:
    async def main() -> list[str]:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(library)
            await store.put(doc("1", [1, 0, 0]))
            found = await store.nearest(Doc.by_embedding(tenant="a"), [1, 0, 0], whole=True)
            return ids(found)

    assert asyncio.run(main()) == ["1"]


def test_names_observers_and_tapes(tmp_path: Path) -> None:
    for address in (":memory:", "http://nobody.example"):
        spent: list[isotone.Observation] = []
        with isotone.connect(
            address,
            table_prefix="test-",
            tape=tmp_path / "tape.jsonl",
            observe=[isotone.at_end(spent.append)],
        ) as store:
            store.create_tables(library)
            store.put(doc("1", [1, 0, 0]))
            assert ids(store.nearest(Doc.by_distance, [1, 0, 0])) == ["1"]
        assert spent[-1].operation == "SearchVectors"


# Entities with expiry, kinds and versions

shelf = Table("shelf")


class Note(Entity, table=shelf):
    name: Attr[str] = field()
    embedding: Attr[Vector] = vector(2)
    until: Attr[datetime | None] = expires(default=None)

    primary = Key("NOTE", name).sort("NOTE")
    near = VectorIndex(embedding, name="near-notes")


class Remark(Note):
    author: Attr[str] = field()


def test_the_kinds_of_an_entity(desk: Desk) -> None:
    desk.store.create_tables(shelf)
    for number in range(6):
        embedding = Vector([1, number / 10])
        if number % 2:
            desk.store.put(Remark(name=str(number), embedding=embedding, author="ann"))
        else:
            desk.store.put(Note(name=str(number), embedding=embedding))
    found = desk.store.nearest(Note.near, [1, 0.1], limit=3)
    assert [type(each.entity).__name__ for each in found] == ["Remark", "Note", "Note"]
    remarks = desk.store.nearest(Remark.near, [1, 0], limit=2)
    assert [(each.entity.name, each.entity.author) for each in remarks] == [
        ("1", "ann"),
        ("3", "ann"),
    ]


def test_what_has_expired_is_left_out(desk: Desk) -> None:
    desk.store.create_tables(shelf)
    desk.store.put(Note(name="a", embedding=Vector([1, 0]), until=START + timedelta(hours=1)))
    assert len(desk.store.nearest(Note.near, [1, 0])) == 1
    desk.clock.advance(3600)
    for whole in (False, True):
        assert desk.store.nearest(Note.near, [1, 0], whole=whole) == []


pages = Table("pages")


class Page(Entity, table=pages, version=2, tag="Page"):
    name: Attr[str] = field()
    text: Attr[str] = field()
    embedding: Attr[Vector] = vector(2)

    primary = Key("PAGE", name).sort("PAGE")
    near = VectorIndex(embedding)

    @staticmethod
    @upgrade(1)
    def rename(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "text": item.pop("body"), "embedding": list(item["embedding"])}


def test_older_versions_are_upgraded(desk: Desk) -> None:
    class Earlier(Entity, table=Table("pages"), tag="Page"):
        name: Attr[str] = field()
        body: Attr[str] = field()
        embedding: Attr[Vector] = vector(2)

        primary = Key("PAGE", name).sort("PAGE")

    desk.store.create_tables(pages)
    desk.store.put(Earlier(name="a", body="Hello", embedding=Vector([1, 0])))
    assert desk.store.nearest(Page.near, [1, 0])[0].entity.text == "Hello"


def test_an_index_of_one_kind_has_no_tag(desk: Desk) -> None:
    plain = Table("plain")

    class Song(Entity, table=plain):
        name: Attr[str] = field()
        mood: Attr[Vector] = vector(2)

        primary = Key("SONG", name).sort("SONG")
        by_mood = VectorIndex(mood, one_kind=True)

    desk.store.create_tables(plain)
    desk.store.put(Song(name="Waltz", mood=Vector([1, 2])))
    item = {"PK": {"S": "x"}, "SK": {"S": "x"}, "mood": {"L": [{"N": "1"}, {"N": "2"}]}}
    desk.backend.execute(
        "PutItem", {"TableName": "plain", "Item": {**item, "_type": {"S": "Other"}}}
    )
    (found,) = desk.store.nearest(Song.by_mood, [1, 2])
    assert found.entity.name == "Waltz"
    described = desk.backend.execute("DescribeTable", {"TableName": "plain"})["Table"]
    assert "SearchSchema" not in described["VectorIndexes"][0]


# Vectors


def test_a_vector_has_nine_digits() -> None:
    assert Vector([0.1, 1, Decimal("2.5"), 1 / 3]) == (0.1, 1.0, 2.5, 0.333333333)
    assert repr(Vector([1, 2])) == "Vector([1.0, 2.0])"
    assert repr(Vector(range(9))) == "<Vector of 9 dimensions: 0.0, 1.0, 2.0, …>"
    assert pickle.loads(pickle.dumps(Vector([1, 2]))) == Vector([1, 2])
    assert Vector(each for each in (1, 2)) == Vector((1, 2))


def test_numpy_arrays_are_vectors(desk: Desk) -> None:
    numpy = pytest.importorskip("numpy")
    desk.store.create_tables(library)
    for kind in ("float32", "float64", "float16", "int8"):
        array = numpy.array([1, 0.5, -0.25]).astype(kind)
        stored = desk.store.put(doc(kind, array))
        assert desk.store.refresh(doc(kind, None)) == stored
        assert (numpy.asarray(stored.embedding, "float32") == array.astype("float32")).all()
        assert len(desk.store.nearest(Doc.by_embedding(tenant="a"), array)) >= 1
    with pytest.raises(UsageError, match="element 0 of the vector is a list"):
        Vector(numpy.zeros((2, 3)))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_a_vector_is_stored_exactly(numbers: list[float]) -> None:
    import struct

    (item,) = [Doc.embedding.wire.encode(Vector(numbers))]
    assert Doc.embedding.wire.decode(item) == Vector(numbers)
    packed = struct.pack("<3f", *(float(each["N"]) for each in item["L"]))
    assert packed == struct.pack("<3f", *(number + 0.0 for number in numbers))


def test_an_iterator_is_read_once() -> None:
    assert Vector(iter([1, 2])) == (1.0, 2.0)
    with pytest.raises(UsageError, match="element 1 of the vector is 'a', which is not a number"):
        Vector(iter([1, "a"]))


def test_numbers_below_the_smallest_float_are_zero(desk: Desk) -> None:
    """The database refuses numbers closer to zero than 1e-130."""
    assert Vector([1e-200, -1e-46, 1.5e-45]) == (0.0, 0.0, 1.5e-45)
    desk.store.create_tables(library)
    stored = desk.store.put(doc("1", [1e-300, -1e-300, 1]))
    assert desk.store.refresh(stored).embedding == Vector([0, 0, 1])


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1, 2], "the vector has 2 dimensions, and 3 are declared"),
        ([1, 2, math.nan], "element 2 of the vector is nan"),
        ([1, -math.inf, 3], "element 1 of the vector is -inf"),
        ([1, 1e39, 3], "element 1 of the vector is 1e.39, which is too large"),
        ([1, 10**400, 3], "element 1 of the vector is 1000"),
        ([1e308, 1e308, 3], r"element 0 of the vector is 1e\+308, which is too large"),
        (["1", 2, 3], "element 0 of the vector is '1', which is not a number"),
        ([None, 2, 3], "element 0 of the vector is None"),
        ([True, 2, 3], "element 0 of the vector is True"),
        ([[1], 2, 3], "element 0 of the vector is a list"),
        ("123", "'123' is not a vector"),
        ({1, 2, 3}, "is not a vector"),
        (7, "7 is not a vector"),
    ],
)
def test_what_is_not_a_vector_is_refused(desk: Desk, numbers: Any, message: str) -> None:
    desk.store.create_tables(library)
    stored = desk.store.put(doc("1", [1, 2, 3]))
    with pytest.raises(InvalidEntity, match=message):
        Doc(tenant="a", doc_id="1", embedding=numbers)
    with pytest.raises(UsageError, match=message):
        stored.embedding = numbers
    with pytest.raises(UsageError, match=message):
        desk.store.update(stored, Doc.embedding.set(numbers))
    with pytest.raises(UsageError, match=message):
        desk.store.nearest(Doc.by_distance, numbers)
    assert desk.store.refresh(stored).embedding == Vector([1, 2, 3])


def test_a_stored_vector_of_another_length_is_not_valid(desk: Desk) -> None:
    plain = Table("plain")

    class Song(Entity, table=plain):
        name: Attr[str] = field()
        mood: Attr[Vector] = vector(2)

        primary = Key("SONG", name).sort("SONG")

    desk.store.create_tables(plain)
    desk.store.put(Song(name="Waltz", mood=Vector([1, 2])))
    item = desk.item(Song(name="Waltz", mood=Vector([1, 2])))
    for wrong in ({"L": [{"N": "1"}]}, {"L": [{"S": "a"}, {"N": "1"}]}, {"S": "12"}):
        desk.backend.execute("PutItem", {"TableName": "plain", "Item": {**item, "mood": wrong}})
        with pytest.raises(InvalidItem, match="mood"):
            desk.store.get(Song, name="Waltz")


def test_json_has_a_list() -> None:
    each = doc("1", [1, 0.5, 2])
    assert '"embedding":[1.0,0.5,2.0]' in each.model_dump_json()
    assert Doc.model_validate_json(each.model_dump_json()) == each
    schema = Picture.model_json_schema()["properties"]["embedding"]
    assert (schema["type"], schema["minItems"], schema["maxItems"]) == ("array", 3, 3)


# What a search may be given


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda: Doc.by_embedding(), "divided by 'tenant', so a search needs its value"),
        (
            lambda: Doc.by_embedding(tenant="a", title="b"),
            "cannot be searched by 'title', but by tenant",
        ),
        (lambda: Doc.by_embedding(tenant="a", colour="b"), "has no field 'colour'"),
        (lambda: Doc.by_embedding(tenant=None), "tenant=None cannot be searched for"),
        (lambda: Doc.by_embedding(tenant=3), "field 'tenant': 3 is an int"),
        (lambda: Doc.by_embedding.where(Doc.tenant == "a", Doc.year > 1), "searched by == alone"),
        (lambda: Doc.by_embedding.where(Doc.tenant != "a"), "searched by == alone"),
        (lambda: Doc.by_embedding.where(Picture.name == "a"), "has no field 'name'"),
        (lambda: Doc.by_embedding.where(Doc.year == 1, Doc.year == 2), "two values of 'year'"),
        (lambda: Doc, "takes a search, such as"),
        (lambda: Doc.primary.where(Doc.tenant == "a"), "takes a search, such as"),
    ],
)
def test_other_searches_are_refused(desk: Desk, search: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        desk.store.nearest(search(), [1, 2, 3])
    assert desk.asked == []


# Declarations


def declare(**members: Any) -> None:
    def body(namespace: dict[str, Any]) -> None:
        name: Any = field()
        embedding: Any = vector(3)
        flag: Any = field()
        namespace |= {"name": name, "embedding": embedding, "flag": flag}
        namespace["__annotations__"] = {
            "name": Attr[str],
            "embedding": Attr[Vector],
            "flag": Attr[bool],
        }
        namespace["primary"] = Key("THING", name).sort("THING")
        fields = dict(namespace)
        namespace |= {each: make(fields) for each, make in members.items()}

    import types

    types.new_class(
        "Thing", (Entity,), {"table": Table("things", indexes={"GSI1": Global("a")})}, body
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda its: VectorIndex(its["name"]),
            "which is not a vector; declare the field by vector",
        ),
        (
            lambda its: VectorIndex(its["embedding"], metric="l2"),
            "metric='l2' is not known; use one of cosine",
        ),
        (lambda its: VectorIndex(its["embedding"], partition=its["flag"]), "stored as BOOL"),
        (
            lambda its: VectorIndex(its["embedding"], filters=[Doc.year]),
            "is not a field of the entity",
        ),
        (lambda its: VectorIndex(Doc.embedding), "is not a field of the entity"),
        (
            lambda its: VectorIndex(its["embedding"], partition=its["name"], filters=[its["name"]]),
            "has a field twice",
        ),
        (
            lambda its: VectorIndex(its["embedding"], projection=("name",)),
            "is not a field of the entity",
        ),
        (lambda its: VectorIndex(its["embedding"], name="GSI1"), "has another index 'GSI1'"),
        (lambda its: VectorIndex(its["embedding"], name="a b"), "cannot name an index"),
    ],
)
def test_declarations_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        declare(near=make)


@pytest.mark.parametrize("dimensions", [0, 4097, 1.5, "3"])
def test_dimensions_that_are_refused(dimensions: Any) -> None:
    with pytest.raises(UsageError, match="1 to 4096 dimensions"):
        vector(dimensions)


def test_types_that_are_refused() -> None:
    with pytest.raises(UsageError, match="made by vector"):

        class Wrong(Entity, table=Table("wrong")):
            name: Attr[str] = field()
            embedding: Attr[list[float]] = vector(3)

            primary = Key("WRONG", name).sort("WRONG")

    with pytest.raises(UsageError, match=r"write vector\("):

        class Other(Entity, table=Table("wrong")):
            name: Attr[str] = field()
            embedding: Attr[Vector] = field()

            primary = Key("WRONG", name).sort("WRONG")


def test_two_entities_do_not_declare_an_index_in_two_ways() -> None:
    things = Table("things")

    class One(Entity, table=things):
        name: Attr[str] = field()
        embedding: Attr[Vector] = vector(3)

        primary = Key("ONE", name).sort("ONE")
        near = VectorIndex(embedding, name="near-things")

    with pytest.raises(UsageError, match="One declares index 'near-things' differently"):

        class Two(Entity, table=things):
            name: Attr[str] = field()
            embedding: Attr[Vector] = vector(3)

            primary = Key("TWO", name).sort("TWO")
            near = VectorIndex(embedding, name="near-things", metric="euclidean")

    class Three(Entity, table=things):
        name: Attr[str] = field()
        embedding: Attr[Vector] = vector(3)

        primary = Key("THREE", name).sort("THREE")
        near = VectorIndex(embedding, name="near-things")

    assert list(things.vectors) == ["near-things"]


# Tables


def test_tables_are_compared_and_get_missing_indexes(desk: Desk) -> None:
    bare = Table("library", indexes=library.indexes)
    desk.store.create_tables(bare)
    desk.store.put(doc("1", [1, 0, 0]))
    assert [str(each) for each in desk.store.differences(library)] == [
        f"index {name!r} of table 'library' does not exist" for name in library.vectors
    ]
    with pytest.raises(TableDiffers):
        desk.store.create_tables(library)
    assert desk.store.add_indexes(library) == list(library.vectors)
    assert desk.store.differences(library) == []
    assert desk.store.create_tables(library) == []
    assert ids(desk.store.nearest(Doc.by_embedding(tenant="a"), [1, 0, 0])) == ["1"]


def test_differences_of_a_vector_index(desk: Desk) -> None:
    desk.store.create_tables(library)
    other = Table("library", indexes=library.indexes)

    class Changed(Entity, table=other, tag="Doc"):
        tenant: Attr[str] = field()
        doc_id: Attr[str] = field()
        year: Attr[str] = field()
        vectors: Attr[Vector] = vector(4)

        primary = Key("TENANT", tenant).sort("DOC", doc_id)
        by_embedding = VectorIndex(
            vectors, filters=(tenant, year), metric="euclidean", projection="KEYS_ONLY"
        )

    assert [each.what for each in desk.store.differences(other)] == [
        "has the vectors of 'embedding', declared is 'vectors'",
        "has the dimensions 3, declared is 4",
        "has the metric COSINE, declared is EUCLIDEAN",
        "is searched by _type (INLINE_FILTER), language (INLINE_FILTER), tenant (HASH), year (INLINE_FILTER), "
        "declared is _type (INLINE_FILTER), tenant (INLINE_FILTER), year (INLINE_FILTER)",
        "has 'year' as N, declared is S",
        "projects ALL, declared is KEYS_ONLY",
    ]


def test_an_engine_without_vectors(desk: Desk) -> None:
    without = isotone.connect(desk, capabilities=Capabilities(vectors=False))
    with pytest.raises(
        Unsupported, match="vector index 'by_embedding' of table 'library' needs vectors"
    ):
        without.create_tables(library)
    with pytest.raises(Unsupported, match="a vector search needs vectors"):
        without.nearest(Doc.by_distance, [1, 2, 3])
    assert desk.asked == []


class _Ignorant:
    """An engine that knows nothing of vector indexes, and says so only when it is searched."""

    def __init__(self, desk: Desk) -> None:
        self._backend = desk.backend

    def execute(self, operation: str, request: Any) -> Any:
        if operation == "SearchVectors":
            raise UnknownOperationException("no such action")
        request = {name: each for name, each in request.items() if name != "VectorIndexes"}
        if "AttributeDefinitions" in request:
            keys = {"PK", "SK", "GSI1PK", "GSI1SK"}
            request["AttributeDefinitions"] = [
                each for each in request["AttributeDefinitions"] if each["AttributeName"] in keys
            ]
        return self._backend.execute(operation, request)


def test_an_engine_that_ignores_vectors(desk: Desk) -> None:
    with isotone.connect(_Ignorant(desk)) as store:
        with pytest.raises(
            Unsupported, match="was created without its vector index 'by_embedding'"
        ):
            store.create_tables(library)
        with pytest.raises(Unsupported, match="has no SearchVectors"):
            store.nearest(Doc.by_distance, [1, 2, 3])
