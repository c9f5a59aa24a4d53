"""JSON that is decoded in pieces: the same values and the same refusals as at once, and no large call."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone import effort
from isotone.values import json_pieces, types
from isotone.values.json_pieces import PIECE, decode_in_pieces
from isotone.values.request_body import REFUSED
from isotone.values.types import sorted_members

TEXTS = st.text(alphabet='ab,{}[]":\\ ü\n', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.dictionaries(TEXTS, inner, max_size=6)
        | st.builds(lambda value, count: [value] * count, inner, st.integers(0, 30))
    ),
    max_leaves=30,
)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")])


def decoded(decode: Any, body: bytes) -> Any:
    try:
        return "decoded", decode(body)
    except REFUSED:
        return "refused"


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "PIECE", 12)


@settings(max_examples=examples(2000), deadline=None)
@given(VALUES, SEPARATORS, st.booleans(), st.sampled_from([1, 12, 40]))
def test_pieces_make_the_same_value(
    value: Any, separators: tuple[str, str], ascii_only: bool, piece: int
) -> None:
    body = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_pieces, "PIECE", piece)
        assert decode_in_pieces(b" \n" + body + b"\t ") == value


@settings(max_examples=examples(4000), deadline=None)
@given(VALUES, SEPARATORS, st.data())
def test_what_is_no_json_is_refused_in_pieces_too(
    value: Any, separators: tuple[str, str], data: st.DataObject
) -> None:
    body = bytearray(json.dumps(value, separators=separators, ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(body)))
        wrong = data.draw(
            st.sampled_from([b"", b",", b"]", b"}", b'"', b"\\", b"[", b"\xff", b" "])
        )
        body[place : place + data.draw(st.integers(0, 2))] = wrong
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(json_pieces, "PIECE", 12)
        assert decoded(decode_in_pieces, bytes(body)) == decoded(msgspec.json.decode, bytes(body))


@pytest.mark.parametrize(
    "body",
    [
        b'[{"N":"1"},{"N":"2"},,{"N":"3"},{"N":"4"}]',
        b'[{"N":"1"},{"N":"2"},  ,{"N":"3"},{"N":"4"}]',
        b'[{"N":"1"},{"N":"2"},{"N":"3"},{"N":"4"},]',
        b'[,{"N":"1"},{"N":"2"},{"N":"3"},{"N":"4"}]',
        b'[{"N":"1"},{"N":"2"},{"N":"3"},{"N":"4"}]]',
        b'["aaaa","bbbb","cccc","dddd","eeee" "ffff"]',
        b'{"aaaaaaaa":["aaaa"],,"bbbbbbbbbb":1}',
        b'{"a":1,"b":2,,"c":3,"d":4,"e":5,"f":6}',
        b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,}',
        b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}}',
        b'{"a":1,"b":2,"c":3,"d":4],"e":5,"f":6}',
        b'{,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}',
        b"[" * 100_000,
        b'{"\xff":1,"aaaaaaaaaaaaaaaaaaaaa":2}',
        b"",
        b"   ",
    ],
)
@pytest.mark.usefixtures("small_pieces")
def test_what_is_almost_json_is_refused(body: bytes) -> None:
    assert decoded(msgspec.json.decode, body) == "refused"
    assert decoded(decode_in_pieces, body) == "refused"


FLAT = [{"N": str(number % 10)} for number in range(30_000)]
MAPS = [{"M": {"a": {"S": "x"}, "b": {"N": "1"}}}] * 10_000
MEMBERS = {f"a{number}": {"S": "x"} for number in range(20_000)}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"l": {"L": FLAT}}, id="a list"),
        pytest.param({"l": {"L": MAPS}}, id="of maps"),
        pytest.param({"l": {"L": [{"L": FLAT}, {"M": MEMBERS}]}}, id="a list inside of a list"),
        pytest.param(MEMBERS, id="a map"),
        pytest.param({"l": {"SS": [f"{number:09}" for number in range(30_000)]}}, id="a set"),
        pytest.param([f"a{number}" for number in range(50_000)], id="names"),
        pytest.param([1] * 100_000, id="numbers"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_no_call_decodes_much(
    monkeypatch: pytest.MonkeyPatch, value: Any, separators: tuple[str, str]
) -> None:
    sizes: list[int] = []

    def noted(body: bytes) -> Any:
        sizes.append(len(body))
        return msgspec.json.decode(body)

    monkeypatch.setattr(json_pieces, "_whole", noted)
    body = json.dumps(value, separators=separators).encode()
    assert decode_in_pieces(body) == value
    assert max(sizes) <= 2 * PIECE
    assert len(sizes) <= 4 * len(body) / PIECE + 10  # nor are there many small ones


@pytest.mark.parametrize(
    "value",
    [FLAT, MAPS, MEMBERS, [f"a{number}" for number in range(50_000)]],
    ids=["a list", "a list of maps", "a map", "names"],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_what_is_of_one_kind_is_not_searched_from_end_to_end(
    monkeypatch: pytest.MonkeyPatch, value: Any, separators: tuple[str, str]
) -> None:
    monkeypatch.setattr(json_pieces, "_elements", None)
    monkeypatch.setattr(json_pieces, "_members", None)
    assert decode_in_pieces(json.dumps(value, separators=separators).encode()) == value


# What giving way means for memory


class Piece:
    """What can be watched."""


def test_pieces_are_freed_one_after_the_other_when_the_work_is_done() -> None:
    freed: list[int] = []

    def freed_one() -> None:
        freed.append(len(effort.this_thread.turn.kept or ()))

    with effort.giving_way():
        for _ in range(3):
            piece = Piece()
            weakref.finalize(piece, freed_one)
            effort.keep(piece)
        del piece
        assert freed == []
    assert len(freed) == 3
    assert effort.this_thread.turn.kept is None


def test_not_much_is_kept() -> None:
    alive: weakref.WeakSet[Piece] = weakref.WeakSet()
    with effort.giving_way():
        for _ in range(1000):
            piece = Piece()
            alive.add(piece)
            effort.keep(piece)
        del piece
        assert 1 < len(alive) <= 128
    assert len(alive) == 0


def test_only_a_thread_that_gives_way_keeps_pieces() -> None:
    piece = Piece()
    watched = weakref.ref(piece)
    effort.keep(piece)
    del piece
    assert watched() is None


def fail_with_pieces() -> None:
    with effort.giving_way():
        for _ in range(20):
            effort.keep(Piece())
        raise ZeroDivisionError


@pytest.mark.parametrize("enabled", [True, False])
def test_while_many_pieces_are_kept_no_garbage_is_collected(enabled: bool) -> None:
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        for _ in range(20):
            effort.keep(Piece())  # not kept: this thread does not give way
        assert gc.isenabled() == enabled
        with effort.giving_way():
            for _ in range(5):
                effort.keep(Piece())
            assert gc.isenabled() == enabled
            for _ in range(15):
                effort.keep(Piece())
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
        with pytest.raises(ZeroDivisionError):
            fail_with_pieces()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_garbage_is_collected_again_when_the_last_of_two_threads_is_done() -> None:
    began, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with effort.giving_way():
            began.set()
            may_end.wait(10)
            for _ in range(20):
                effort.keep(Piece())

    assert gc.isenabled()
    thread = threading.Thread(target=work)
    with effort.giving_way():
        for _ in range(20):
            effort.keep(Piece())
        thread.start()
        assert began.wait(10)
        assert not gc.isenabled()
    may_end.set()
    thread.join(10)
    assert gc.isenabled()


# Sorting


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.integers(-50, 50).map(str) | st.floats(-9, 9).map(str)),
    st.sampled_from([str, float]),
)
def test_a_thread_that_gives_way_sorts_the_same(texts: list[str], key: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(effort, "SORTED_AT_ONCE", 3)
        with effort.giving_way():
            assert effort.in_order(texts, key) == sorted(texts, key=key)


@pytest.mark.parametrize("code", ["SS", "NS", "BS"])
@pytest.mark.parametrize("fraction", ["", ".5"])
def test_a_thread_that_gives_way_sorts_few_at_once(
    monkeypatch: pytest.MonkeyPatch, code: str, fraction: str
) -> None:
    members = [f"{number}{fraction}" for number in reversed(range(10_000))]
    if code == "BS":
        members = [b64encode(member.encode()).decode() for member in members]
    expected = sorted_members(code, members)
    assert sorted(expected) == sorted(members)
    sizes: list[int] = []

    def noted(texts: list[str], **options: Any) -> list[str]:
        sizes.append(len(texts))
        return sorted(texts, **options)

    for module in effort, types:
        monkeypatch.setattr(module, "sorted", noted, raising=False)
    with effort.giving_way():
        assert sorted_members(code, members) == expected
    assert max(sizes) <= 2000
    assert sorted_members(code, members) == expected
    assert max(sizes) == 10_000  # in the thread of a caller nobody waits
