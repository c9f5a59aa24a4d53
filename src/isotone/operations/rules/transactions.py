"""Rules on TransactGetItems and TransactWriteItems."""

from __future__ import annotations

from typing import Final

from isotone.errors import ValidationException
from isotone.operations.rules.parameters import Parameters, checker, given
from isotone.operations.shapes.transactions import (
    ConditionCheck,
    Delete,
    Put,
    TransactGetItems,
    TransactWriteItem,
    TransactWriteItems,
    Update,
)

_ACTIONS: Final = ("condition_check", "put", "update", "delete")
_check_get: Final = checker(Parameters(expressions=("projection_expression",)))
_check_conditional: Final = checker(
    Parameters(expressions=("condition_expression",), with_values=("condition_expression",))
)
_check_update: Final = checker(
    Parameters(
        expressions=("update_expression", "condition_expression"),
        with_values=("update_expression", "condition_expression"),
    )
)


def check_transact_get_items(request: TransactGetItems) -> None:
    """What each read of a transaction may combine."""
    for entry in request.transact_items:
        _check_get(entry.get)


def check_transact_write_items(request: TransactWriteItems) -> None:
    """That each entry is one action, and what it may combine."""
    for entry in request.transact_items:
        action = action_of(entry)
        check = _check_update if isinstance(action, Update) else _check_conditional
        check(action)


def action_of(entry: TransactWriteItem) -> ConditionCheck | Put | Update | Delete:
    """The one action of an entry."""
    actions = given(entry, _ACTIONS)
    if not actions:
        raise ValidationException(
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request"
        )
    if len(actions) > 1:
        raise ValidationException(
            "TransactItems can only contain one of Check, Put, Update or Delete"
        )
    action: ConditionCheck | Put | Update | Delete = getattr(entry, actions[0])
    return action
