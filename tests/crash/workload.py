"""A short history of transactions with the state that each must leave behind."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random

from isotone.storage.interface import OrderedStore

State = dict[str, dict[bytes, bytes]]
Step = Callable[[OrderedStore, State], None]


def history(length: int, seed: int = 1) -> Iterator[tuple[Step, State]]:
    """Each transaction, and the whole content of the store once it is committed."""
    random = Random(seed)
    state: State = {}
    for number in range(length):
        step = _create if number == 0 else _change(random, number)
        step(_Nowhere(), state)
        yield step, copy.deepcopy(state)


def run(step: Step, store: OrderedStore) -> None:
    with store.transaction():
        step(store, {"a": {}, "b": {}, "c": {}})


def content(store: OrderedStore) -> State:
    return {tree: dict(store.range(tree, b"", None)) for tree in store.trees()}


def _create(store: OrderedStore, state: State) -> None:
    for tree in ("a", "b"):
        store.create_tree(tree)
        state[tree] = {}


def _change(random: Random, number: int) -> Step:
    key = b"%03d" % random.randrange(30)
    other = b"%03d" % random.randrange(30)
    value = b"%d" % number + random.randbytes(random.choice([10, 300, 3_000, 30_000]))

    def step(store: OrderedStore, state: State) -> None:
        # The same in both trees, so that half a transaction shows.
        for tree in ("a", "b"):
            store.put(tree, key, value)
            state[tree][key] = value
        with store.transaction() as unwanted:
            store.put("a", b"never", value)
            unwanted.rollback()
        if number % 3 == 0:
            for tree in ("a", "b"):
                store.delete(tree, other)
                state[tree].pop(other, None)
        if number % 10 == 5:
            store.create_tree("c")
            state["c"] = {}
        if number % 10 == 9:
            store.drop_tree("c")
            state.pop("c", None)

    return step


class _Nowhere:
    """A store that takes everything and keeps nothing: only the model's state is wanted."""

    def put(self, *_: object) -> None: ...

    delete = create_tree = drop_tree = rollback = put

    def transaction(self) -> _Nowhere:
        return self

    def __enter__(self) -> _Nowhere:
        return self

    def __exit__(self, *_: object) -> None: ...
