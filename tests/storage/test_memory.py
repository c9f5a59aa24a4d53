from __future__ import annotations

from isotone.storage.memory import MemoryStore


def filled(entries: dict[bytes, bytes]) -> MemoryStore:
    store = MemoryStore()
    with store.transaction():
        store.create_tree("t")
        for key, value in entries.items():
            store.put("t", key, value)
    return store


def test_the_check_finds_a_lost_key() -> None:
    store = filled({b"a": b"1", b"b": b"2"})
    store._trees["t"].keys.remove(b"a")
    assert store.check() == ["tree t: the sorted keys are not the keys of its 2 values"]
