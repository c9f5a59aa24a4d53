"""Stores the tokens of the last ten minutes (ClientRequestToken). `operations/transactions` compares and refuses."""

from __future__ import annotations

from itertools import islice

from isotone import limits
from isotone.clock import milliseconds
from isotone.engine.engine import TOKENS, Engine

_TIME = 8
_SLICE = 100


def recall(engine: Engine, token: str) -> bytes | None:
    """The identity of the transaction that used a token; None if it is unused or expired."""
    stored = engine.store.get(TOKENS, b"t" + token.encode())
    if stored is None or int.from_bytes(stored[:_TIME], "big") < milliseconds(engine.clock):
        return None
    return stored[_TIME:]


def remember(engine: Engine, token: str, identity: bytes) -> None:
    """Record a transaction as executed, within that transaction."""
    until = (milliseconds(engine.clock) + limits.TOKEN_LIFETIME * 1000).to_bytes(_TIME, "big")
    engine.store.put(TOKENS, b"t" + token.encode(), until + identity)
    engine.store.put(TOKENS, b"e" + until + token.encode(), b"")


def forget_old(engine: Engine) -> bool:
    """Drop a slice of the expired tokens; False if there were none."""
    high = b"e" + milliseconds(engine.clock).to_bytes(_TIME, "big")
    with engine.reading:
        if next(engine.store.range(TOKENS, b"e", high), None) is None:
            return False
    with engine.writing:
        for key, _ in list(islice(engine.store.range(TOKENS, b"e", high), _SLICE)):
            _forget(engine, key)
    return True


def _forget(engine: Engine, expiry_key: bytes) -> None:
    engine.store.delete(TOKENS, expiry_key)
    until, token_key = expiry_key[1 : 1 + _TIME], b"t" + expiry_key[1 + _TIME :]
    stored = engine.store.get(TOKENS, token_key)
    if stored is not None and stored[:_TIME] == until:  # otherwise it was used again since
        engine.store.delete(TOKENS, token_key)
