from __future__ import annotations

import pytest

from isotone.codec import decode_key, encode_number
from isotone.errors import StorageCorrupt
from isotone.values.number import canonical_number


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("0", "11"),
        ("1", "12 80 02"),
        ("5", "12 80 0a"),
        ("10", "12 80 14"),
        ("99", "12 80 c6"),
        ("100", "12 81 02"),
        ("101", "12 81 03 02"),
        ("1234", "12 81 19 44"),
        ("12345", "12 82 03 2f 5a"),
        ("10001", "12 82 03 01 02"),
        ("1700000000", "12 84 22"),
        ("0.5", "12 7f 64"),
        ("0.05", "12 7f 0a"),
        ("0.005", "12 7e 64"),
        ("1.5", "12 80 03 64"),
        ("12.345", "12 80 19 45 64"),
        ("-1", "10 7f fd"),
        ("-1.5", "10 7f fc 9b"),
        ("-100", "10 7e fd"),
        ("1e-130", "12 3f 02"),
        ("1e125", "12 be 14"),
        ("9.9e125", "12 be c6"),
        ("-9.9e125", "10 41 39"),
        ("9" * 38, "12 92" + " c7" * 18 + " c6"),
        ("1" + "2" * 37 + "e1", "12 93 03" + " 2d" * 18 + " 28"),
    ],
)
def test_bytes(text: str, encoded: str) -> None:
    normal = canonical_number(text)
    assert encode_number(normal) == bytes.fromhex(encoded)
    assert decode_key(bytes.fromhex(encoded)) == ({"N": normal},)


@pytest.mark.parametrize(
    "damaged",
    [
        "12",
        "12 80",
        "12 80 01 02",
        "12 80 01",
        "12 00 02",
        "12 ff 02",
        "12 80" + " 03" * 38 + " 02",
        "12 80 03",
        "12 80 00",
        "12 80 ff c8",
        "12 80 03 c8",
        "10 7f",
        "10 7f fc",
    ],
)
def test_damage(damaged: str) -> None:
    with pytest.raises(StorageCorrupt, match="no number"):
        decode_key(bytes.fromhex(damaged))
