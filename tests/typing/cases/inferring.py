"""Inference over a store that waits, one that is awaited, and inside another operation."""

from __future__ import annotations

from typing import assert_type

import isotone
from isotone import AsyncStore, Inferred, Store


def waiting(store: Store) -> None:
    inferred = isotone.infer(store, "shop", sample=100, verify=True)
    assert_type(inferred, Inferred)
    assert_type(inferred.source, str)
    isotone.infer(store, 5)  # E: No overload
    isotone.infer(store, "shop", sample="all")  # E: No overload


async def awaiting(store: AsyncStore) -> None:
    assert_type(await isotone.infer(store, "shop"), Inferred)
