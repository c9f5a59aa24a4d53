"""Rules on requests that address one item."""

from __future__ import annotations

from typing import Final

from isotone.errors import ValidationException
from isotone.operations.rules.attributes import refuse_repeated_names
from isotone.operations.rules.parameters import Parameters, checker
from isotone.operations.shapes.items import DeleteItem, GetItem, PutItem, UpdateItem

_check_put: Final = checker(
    Parameters(
        expressions=("condition_expression",),
        with_values=("condition_expression",),
        legacy=("expected", "conditional_operator"),
        filters=("expected",),
    )
)
_check_get: Final = checker(
    Parameters(expressions=("projection_expression",), legacy=("attributes_to_get",))
)
_check_update: Final = checker(
    Parameters(
        expressions=("update_expression", "condition_expression"),
        with_values=("update_expression", "condition_expression"),
        legacy=("attribute_updates", "expected", "conditional_operator"),
        filters=("expected",),
    )
)


def check_put_item(request: PutItem) -> None:
    """What PutItem may combine."""
    _check_put(request)
    _refuse_new_values(request.return_values)


def check_get_item(request: GetItem) -> None:
    """What GetItem may combine."""
    _check_get(request)
    if request.attributes_to_get is not None:
        refuse_repeated_names(request.attributes_to_get)


def check_update_item(request: UpdateItem) -> None:
    """What UpdateItem may combine."""
    _check_update(request)


def check_delete_item(request: DeleteItem) -> None:
    """What DeleteItem may combine."""
    _check_put(request)
    _refuse_new_values(request.return_values)


def _refuse_new_values(return_values: str | None) -> None:
    if return_values not in (None, "NONE", "ALL_OLD"):
        raise ValidationException("ReturnValues can only be ALL_OLD or NONE")
