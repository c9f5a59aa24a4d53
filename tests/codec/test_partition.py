from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isotone.codec import encode_text, partition_hash, partition_prefix, segment_range


def test_bytes() -> None:
    # BLAKE2b with a digest of eight bytes, which is not a cut of a longer digest: `b2sum -l 64`.
    assert partition_hash(encode_text("a")).hex() == "cee007238b409620"
    assert partition_prefix(b"\x20a\x00") == partition_hash(b"\x20a\x00") + b"\x20a\x00"


@given(st.integers(1, 1_000_000), st.data())
def test_segments_meet_and_do_not_overlap(total: int, data: st.DataObject) -> None:
    segment = data.draw(st.integers(0, total - 1))
    low, high = segment_range(segment, total)
    assert (low == bytes(8)) == (segment == 0)
    if segment + 1 == total:
        assert high is None
    else:
        assert high == segment_range(segment + 1, total)[0]
        assert low < high


@given(st.binary(), st.integers(1, 50))
def test_each_key_is_in_one_segment(key: bytes, total: int) -> None:
    prefix = partition_prefix(key)
    ranges = [segment_range(segment, total) for segment in range(total)]
    assert sum(low <= prefix and (high is None or prefix < high) for low, high in ranges) == 1


def test_segments_get_even_shares() -> None:
    hashes = [partition_hash(encode_text(f"user#{i}")) for i in range(8000)]
    for segment in range(8):
        low, high = segment_range(segment, 8)
        share = sum(low <= hash_ and (high is None or hash_ < high) for hash_ in hashes)
        assert 850 < share < 1150
