"""Decides which of several faults in a request is reported first: walks the action's layers after a refusal.

A request with several faults is answered for the first that the service finds, so each action has an order
(`checks.orders`). The fast path finds in any order whether there is a fault at all; only then `first_fault` walks the
layers. Each layer checks the whole request before the next begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.errors import ApiError, ValidationException
from isotone.operations.request_decoding import accepting_trees, of_checked, typed
from isotone.operations.request_grammar import (
    Constraints,
    ListShape,
    Scalar,
    Shape,
    StructureShape,
    shape_of,
)
from isotone.operations.request_grammar import Mapping as MappingShape
from isotone.operations.request_members import ApiStructure
from isotone.operations.table_lookup import open_table
from isotone.values.attribute_validation import MANY_TYPES, NO_TYPE
from isotone.values.request_body import parsed_body

COUNT: Final = "1 validation error detected: "
_UNCOUNTED: Final = (
    COUNT,
    NO_TYPE,
    MANY_TYPES,
    f"ExpressionAttributeValues contains invalid value: {NO_TYPE}",
    f"ExpressionAttributeValues contains invalid value: {MANY_TYPES}",
    "ExpressionAttributeNames contains invalid key",
    "ExpressionAttributeValues contains invalid key",
)
"""The beginning of a fault that is never counted."""


class RefusedRequest:
    """A refused request, as far as the layers have been able to decode it.

    `document` has the types of the structure, and no nulls. `request` is usable once all required members are valid.
    """

    __slots__ = ("_given", "_request", "_structure", "action", "document", "engine")

    def __init__(
        self,
        engine: Engine,
        action: str,
        structure: type[ApiStructure],
        given: bytes | Mapping[str, Any],
    ) -> None:
        self.engine: Engine = engine
        self.action: str = action
        self._structure = structure
        self._given = given
        self._request: Any = None
        self.document: dict[str, Any] = typed(structure, given)

    @property
    def shape(self) -> StructureShape:
        """The grammar of the request."""
        return shape_of(self._structure)

    @property
    def given(self) -> Mapping[str, Any]:
        """The request as sent, before its types were adapted."""
        given = self._given
        return parsed_body(given) if isinstance(given, bytes) else given

    @property
    def request(self) -> Any:
        """The request as its structure, without optional members that break a constraint."""
        if self._request is None:
            sound = _sound(self.document, self.shape)
            self._request = of_checked(accepting_trees(self._structure), sound)
        return self._request

    def table(self) -> StoredTable:
        """The table of a request on one table. Raises if it does not exist."""
        return open_table(self.engine, self.request.table_name)


def _sound(value: Any, shape: Shape) -> Any:
    """A document without optional members that break a constraint of their own."""
    if isinstance(shape, StructureShape):
        return {
            name: _sound(each, shape.members[name].shape)
            for name, each in value.items()
            if shape.members[name].required or _keeps(each, shape.members[name].shape.constraints)
        }
    if isinstance(shape, ListShape) and not isinstance(shape.member, Scalar):
        return [None if each is None else _sound(each, shape.member) for each in value]
    if isinstance(shape, MappingShape) and isinstance(shape.value, StructureShape):
        return {name: _sound(each, shape.value) for name, each in value.items()}
    return value


def _keeps(value: Any, constraints: Constraints) -> bool:
    return all(rule.holds(value) for rule in constraints if rule.decoding)


Check: TypeAlias = Callable[[RefusedRequest], object]


class Layer(msgspec.Struct, frozen=True):
    """One layer: a short description of the fault, and a function that raises it.

    A `counted` fault is reported as a list of one: "1 validation error detected: …".
    """

    says: str
    check: Check
    counted: bool = False

    def fault(self, asked: RefusedRequest) -> ApiError | None:
        """The first fault that the layer finds."""
        try:
            self.check(asked)
        except ValidationException as error:
            if self.counted and not error.message.startswith(_UNCOUNTED):
                return ValidationException(COUNT + error.message, **error.members)
            return error
        except ApiError as error:
            return error
        return None


class OrderBranch(msgspec.Struct, frozen=True):
    """Separate layers for some requests; the other layers do not check these any further."""

    says: str
    applies: Callable[[RefusedRequest], bool]
    layers: tuple[Layer, ...]

    def fault(self, asked: RefusedRequest) -> ApiError | None:
        """The first fault of a request that takes this branch."""
        return _first(self.layers, asked) if self.applies(asked) else None


Order: TypeAlias = tuple[Layer | OrderBranch, ...]


def first_fault(
    engine: Engine,
    action: str,
    structure: type[ApiStructure],
    given: bytes | Mapping[str, Any],
    order: Order,
) -> ApiError | None:
    """The fault that the service reports for a refused request; None if no layer finds one."""
    try:
        asked = RefusedRequest(engine, action, structure, given)
    except ApiError as error:
        return error
    return _first(order, asked)


def _first(order: Order, asked: RefusedRequest) -> ApiError | None:
    for layer in order:
        fault = layer.fault(asked)
        if fault is not None:
            return fault
    return None
