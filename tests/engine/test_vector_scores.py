"""Searches of vectors, with and without NumPy, against a naive oracle in exact fractions."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone.engine import vector_scores
from isotone.engine.index_entries import IndexEntry
from isotone.engine.table_schema import (
    Distance,
    IndexProjection,
    KeyPart,
    KeySchema,
    TableSchema,
    VectorSchema,
)
from isotone.engine.vector_cache import Rows, VectorCache
from isotone.engine.vector_index import StoredVectorIndex
from isotone.engine.vector_scores import nearest, numpy_if_installed

DISTANCES: tuple[Distance, ...] = ("COSINE", "DOT_PRODUCT", "EUCLIDEAN")
LARGEST = 3.4028234663852886e38
KEYS = KeySchema((KeyPart("p", "S"),))
TABLE = TableSchema("t", "", 0.0, KEYS, "t1", {"p": "S"})

singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
elements = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]), st.floats(-2, 2, width=32), singles
)


def make_index(distance: Distance, dimensions: int) -> StoredVectorIndex:
    schema = VectorSchema("near", "v", dimensions, distance, (), IndexProjection(), "i1")
    return StoredVectorIndex(schema, TABLE)


def make_rows(index: StoredVectorIndex, vectors: list[tuple[float, ...]]) -> Rows:
    rows = Rows(index, (b"", None))
    for number, vector in enumerate(vectors):
        rows.add(*entry(index, number, vector))
    return rows


def entry(index: StoredVectorIndex, number: int, vector: tuple[float, ...]) -> tuple[bytes, bytes]:
    return b"%04d" % number, bytes(4) + index.pack(list(vector)) + b"{}"


def exact_score(distance: Distance, one: tuple[float, ...], two: tuple[float, ...]) -> float:
    """The score by the definition, with exact sums."""
    a, b = [Fraction(x) for x in one], [Fraction(x) for x in two]
    product = sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
    if distance == "DOT_PRODUCT":
        return max(-LARGEST, min(float(product), LARGEST))
    if distance == "EUCLIDEAN":
        squares = sum(((x - y) ** 2 for x, y in zip(a, b, strict=True)), Fraction(0))
        return min(math.sqrt(squares), LARGEST)
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return 1.0 if not lengths else min(max(1 - float(product) / lengths, 0.0), 2.0)


@st.composite
def searches(draw: st.DrawFn) -> tuple[int, list[tuple[float, ...]], tuple[float, ...]]:
    dimensions = draw(st.integers(1, 6))
    vector = st.tuples(*[elements] * dimensions)
    vectors = draw(st.lists(vector, max_size=40))
    return (
        dimensions,
        vectors,
        draw(st.one_of(vector, st.sampled_from(vectors or [(0.0,) * dimensions]))),
    )


def without_numpy(rows: Rows, query: bytes, most: int, chosen: list[int] | None = None) -> Any:
    return vector_scores._nearest_by_python(rows, query, most, chosen)


@pytest.mark.parametrize("distance", DISTANCES)
@settings(deadline=None, max_examples=examples(200))
@given(search=searches(), most=st.integers(1, 8))
def test_numpy_finds_what_python_finds_and_the_definition_says(
    distance: Distance,
    search: tuple[int, list[tuple[float, ...]], tuple[float, ...]],
    most: int,
) -> None:
    pytest.importorskip("numpy")
    dimensions, vectors, query = search
    index = make_index(distance, dimensions)
    wanted = index.pack(list(query))
    ours = nearest(make_rows(index, vectors), wanted, most)
    assert ours == without_numpy(make_rows(index, vectors), wanted, most)
    scores = [exact_score(distance, query, vector) for vector in vectors]
    expected = sorted(scores, reverse=distance == "DOT_PRODUCT")[:most]
    found = [each.score(distance) for each in ours]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    for each in ours:
        assert each.score(distance) == pytest.approx(scores[int(each.key)], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
@settings(deadline=None, max_examples=examples(60))
@given(search=searches(), chosen=st.sets(st.integers(0, 39)), most=st.integers(1, 8))
def test_only_chosen_rows_are_found(
    distance: Distance,
    search: tuple[int, list[tuple[float, ...]], tuple[float, ...]],
    chosen: set[int],
    most: int,
) -> None:
    dimensions, vectors, query = search
    index = make_index(distance, dimensions)
    wanted, places = index.pack(list(query)), sorted(each for each in chosen if each < len(vectors))
    ours = nearest(make_rows(index, vectors), wanted, most, places)
    assert ours == without_numpy(make_rows(index, vectors), wanted, most, places)
    assert {int(each.key) for each in ours} <= set(places)
    assert len(ours) == min(most, len(places))


def test_equal_scores_come_in_the_order_of_keys() -> None:
    index = make_index("EUCLIDEAN", 2)
    rows = make_rows(index, [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] * 5)
    found = nearest(rows, index.pack([0.0, 0.0]), 7)
    assert [int(each.key) for each in found] == list(range(7))


def test_a_vector_of_zeros_is_at_cosine_distance_1() -> None:
    index = make_index("COSINE", 2)
    rows = make_rows(index, [(0.0, 0.0), (1.0, 1.0), (-1.0, -1.0)])
    assert [each.rank for each in nearest(rows, index.pack([1.0, 1.0]), 3)] == [0.0, 1.0, 2.0]
    assert {each.rank for each in nearest(rows, index.pack([0.0, 0.0]), 3)} == {1.0}


def test_scores_end_at_the_largest_float() -> None:
    large = struct.unpack("<f", struct.pack("<f", 3e38))[0]
    index = make_index("DOT_PRODUCT", 2)
    rows = make_rows(index, [(large, large), (-large, -large), (1.0, 0.0)])
    found = nearest(rows, index.pack([large, large]), 3)
    assert [each.score("DOT_PRODUCT") for each in found] == [LARGEST, large, -LARGEST]


@pytest.mark.parametrize("distance", DISTANCES)
def test_many_vectors_of_the_size_of_embeddings(distance: Distance) -> None:
    """The rough pass leaves few candidates, and loses none."""
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(1)
    vectors = random.standard_normal((3000, 96)).astype("f4")
    vectors[1500:] = vectors[:1500]  # each twice
    index = make_index(distance, 96)
    rows = make_rows(index, [tuple(vector) for vector in vectors.tolist()])
    query = vectors[7].tobytes()
    assert len(vector_scores._candidates(numpy, rows, query, 10, None)) < 20
    assert nearest(rows, query, 10) == without_numpy(rows, query, 10)


def test_numpy_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = make_index("COSINE", 2)
    rows = make_rows(index, [(1.0, 0.0), (0.0, 1.0)])
    expected = nearest(rows, index.pack([1.0, 0.5]), 2)
    monkeypatch.setitem(__import__("sys").modules, "numpy", None)
    numpy_if_installed.cache_clear()
    assert numpy_if_installed() is None
    assert (
        nearest(make_rows(index, [(1.0, 0.0), (0.0, 1.0)]), index.pack([1.0, 0.5]), 2) == expected
    )
    numpy_if_installed.cache_clear()


@settings(deadline=None, max_examples=examples(100))
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 12), st.one_of(st.none(), st.tuples(elements, elements))),
        max_size=40,
    ),
    measured=st.booleans(),
)
def test_rows_follow_their_entries(
    changes: list[tuple[int, tuple[float, float] | None]], measured: bool
) -> None:
    index = make_index("COSINE", 2)
    cache, expected = VectorCache(), {}
    rows = make_rows(index, [(1.0, 2.0), (3.0, 4.0)])
    cache.keep("i1", rows)
    expected = dict(zip(rows.keys, rows.packed(), strict=True))
    if measured:
        nearest(rows, index.pack([1.0, 1.0]), 1)
    for number, vector in changes:
        key = b"%04d" % number
        before = IndexEntry(key, b"") if key in expected else None
        if vector is None:
            cache.replace("i1", before, None)
            expected.pop(key, None)
        else:
            after = IndexEntry(*entry(index, number, vector))
            cache.replace("i1", before, after)
            expected[key] = index.vector_of(after.record)
    assert dict(zip(rows.keys, rows.packed(), strict=True)) == expected
    query = index.pack([1.0, 1.0])
    fresh = Rows(index, (b"", None))
    for key, vector in expected.items():
        fresh.add(key, bytes(4) + vector + b"{}")
    assert nearest(rows, query, 5) == nearest(fresh, query, 5)


def test_the_cache_is_bounded_and_drops_what_was_searched_the_longest_ago() -> None:
    index = make_index("COSINE", 2)
    size = make_rows(index, [(1.0, 0.0)] * 10).size
    cache = VectorCache(2 * size)
    for low in (b"a", b"b", b"c"):
        rows = Rows(index, (low, low + b"\xff"))
        for number in range(10):
            rows.add(*entry(index, number, (1.0, 0.0)))
        cache.keep("i1", rows)
        cache.find("i1", b"a")
    assert [rows.low for _, rows in cache.kept()] == [b"c", b"a"]
    assert cache.find("i1", b"b") is None
