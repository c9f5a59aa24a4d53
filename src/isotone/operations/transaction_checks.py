"""Layers of TransactWriteItems: the token, and which action each entry has."""

from __future__ import annotations

from isotone.operations import transactions
from isotone.operations.check_order import Asked
from isotone.operations.request_validation import detected, of_member


def token_fits(asked: Asked) -> None:
    """The ClientRequestToken has the right length."""
    for sentence in of_member(asked.document, asked.shape.members["ClientRequestToken"]):
        raise detected(sentence)


def entries_have_one_action(asked: Asked) -> None:
    """Each entry is one of a put, an update, a delete and a check."""
    for entry in asked.request.transact_items:
        transactions.entry_of(entry)
