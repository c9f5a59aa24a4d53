from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.codec.texts import END, escape, read_body
from isotone.errors import StorageCorrupt

awkward = (
    st.lists(st.sampled_from([0, 1, 2, 0x7F, 0xFE, 0xFF]), max_size=8).map(bytes) | st.binary()
)


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        ("", ""),
        ("61", "61"),
        ("00", "0101"),
        ("01", "0102"),
        ("02", "02"),
        ("0001", "01010102"),
        ("0100", "01020101"),
        ("ff00ff", "ff0101ff"),
    ],
)
def test_bytes(raw: str, body: str) -> None:
    assert escape(bytes.fromhex(raw)).hex() == body


@given(awkward, st.binary(max_size=3))
def test_round_trip_beside_other_bytes(raw: bytes, more: bytes) -> None:
    body = escape(raw) + END
    assert read_body(more + body + more, len(more)) == (raw, len(more) + len(body))


@given(awkward, awkward)
def test_a_body_begins_as_the_body_of_its_beginning(head: bytes, tail: bytes) -> None:
    assert escape(head + tail) == escape(head) + escape(tail)
    assert END not in escape(head)


def test_a_body_without_an_end_is_damage() -> None:
    with pytest.raises(StorageCorrupt, match="without an end"):
        read_body(b"abc", 0)
