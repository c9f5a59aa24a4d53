"""Identifiers: their bytes, and what is refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from isotone.codec.ids import KSUID, ULID
from isotone.codec.readable import Ksuid, Ulid, Uuid
from isotone.errors import MalformedKey, OutOfRange, UsageError

UUID7 = UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")


@pytest.mark.parametrize(
    ("codec", "value", "text"),
    [
        (Ksuid(), "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "0ujtsYcgvSTl8PAuAdqWYSMnLOv"),
        (Ksuid().descending(), 25 * "0" + "Az", 25 * "z" + "p0"),
        (Ulid(), "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (Ulid().descending(), 24 * "0" + "9A", 24 * "Z" + "PN"),
        (Uuid(), UUID7, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
        (Uuid().descending(), UUID7, "fe80dd1d-864f-833c-673b-23f3f3f8c670"),
    ],
)
def test_texts(codec: Any, value: Any, text: str) -> None:
    assert codec.encode(value) == text
    assert codec.decode(text) == value


def test_ids_come_back_as_what_they_are() -> None:
    assert type(Ksuid().decode("0ujtsYcgvSTl8PAuAdqWYSMnLOv")) is KSUID
    assert type(Ulid().decode("01ARZ3NDEKTSV4RRFFQ69G5FAV")) is ULID
    for codec, made in ((Ksuid(), KSUID.new()), (Ulid(), ULID.new())):
        assert type(codec.encode(made)) is str
        assert type(codec.after(made)) is type(made)


def test_a_ulid_may_be_given_in_lower_case_and_is_written_in_upper_case() -> None:
    assert Ulid().encode("01arz3ndektsv4rrffq69g5fav") == "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    with pytest.raises(MalformedKey):
        Ulid().decode("01arz3ndektsv4rrffq69g5fav")


@pytest.mark.parametrize(
    ("codec", "value", "error"),
    [
        (Ksuid(), "x", OutOfRange),
        (Ksuid(), "aWgEPTl1tmebfsQzFP4bxwgy80W", OutOfRange),
        (Ksuid(), 1, UsageError),
        (Ulid(), "01ARZ3NDEKTSV4RRFFQ69G5FAU", OutOfRange),
        (Ulid(), UUID7, UsageError),
        (Uuid(), str(UUID7), UsageError),
    ],
)
def test_other_values_are_refused(codec: Any, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"is no|holds"):
        codec.encode(value)


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        (Ksuid(), "aWgEPTl1tmebfsQzFP4bxwgy80W"),
        (Ksuid().descending(), "00000000000000000000000000!"),
        (Ulid(), "8ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
        (Ulid().descending(), "00000000000000000000000000"),
        (Uuid(), "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"),
        (Uuid(), "017f22e279b07cc398c4dc0c0c07398f"),
        (Uuid(), "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}"),
        (Uuid().descending(), "x"),
    ],
)
def test_other_texts_are_refused(codec: Any, text: str) -> None:
    with pytest.raises(MalformedKey):
        codec.decode(text)
