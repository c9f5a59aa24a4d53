"""Vectors: `embedding: Attr[Vector] = vector(384)`, a list of 32-bit floats in the item.

A number keeps nine significant digits. A 32-bit float holds no more, and neither does the index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Final, SupportsFloat

from isotone import limits
from isotone.errors import UsageError
from isotone.model.declaring.fields import MISSING, Attr, FieldOptions
from isotone.model.declaring.value_validation import with_leaves
from isotone.model.declaring.wire_types import WireType, is_optional, optional_type, present_type
from isotone.values.types import AttributeValue

_SHOWN: Final = 8  # vectors with more dimensions are shown shortened
_LARGEST: Final = 3.40282347e38  # the largest 32-bit float, in nine digits
_SMALLEST: Final = 1.40129846e-45  # the smallest one above 0; DynamoDB refuses numbers below 1e-130


class Vector(tuple[float, ...]):
    """The numbers of a vector: `Vector(model.encode(text))`. Accepts lists, NumPy arrays and other iterables.

    Raises `UsageError` for an element that is not a number, for NaN and infinity, and for a number too large for a
    32-bit float. A number too small for a 32-bit float becomes 0.

    >>> Vector([0.25, 1, -2])
    Vector([0.25, 1.0, -2.0])
    """

    __slots__ = ()

    def __new__(cls, numbers: Iterable[SupportsFloat]) -> Vector:
        if type(numbers) is Vector:
            return numbers
        return tuple.__new__(cls, _floats(numbers))

    def __repr__(self) -> str:
        if len(self) <= _SHOWN:
            return f"Vector({list(self)})"
        begin = ", ".join(map(repr, self[:3]))
        return f"<Vector of {len(self)} dimensions: {begin}, …>"

    def __reduce__(self) -> Any:
        return Vector, (list(self),)


def _floats(numbers: Any) -> list[float]:
    if isinstance(numbers, str | bytes | bytearray | dict | set | frozenset):
        raise UsageError(f"{_short(numbers)} is not a vector; give a list or an array of numbers")
    try:
        # NumPy arrays and tensors convert all numbers to Python floats at once.
        elements = list(numbers.tolist() if hasattr(numbers, "tolist") else numbers)
    except TypeError:
        raise UsageError(
            f"{_short(numbers)} is not a vector; give a list or an array of numbers"
        ) from None
    try:
        floats = [float("%.9g" % each) for each in elements]  # noqa: UP031 - refuses texts
    except (TypeError, ValueError, OverflowError):
        raise _wrong(elements) from None
    if any(map(_is_wrong, elements, floats)):
        raise _wrong(elements)
    return [number if abs(number) >= _SMALLEST else 0.0 for number in floats]


def _is_wrong(element: Any, number: float) -> bool:
    return isinstance(element, bool) or not abs(number) <= _LARGEST


def _wrong(elements: list[Any]) -> UsageError:
    """The error for the first element that is not a 32-bit float."""
    for place, each in enumerate(elements):
        if isinstance(each, list):
            return UsageError(
                f"element {place} of the vector is a list; give one vector, such as the first row of an array"
            )
        try:
            number = float("%.9g" % each)  # noqa: UP031 - as above
        except (TypeError, ValueError, OverflowError):
            return UsageError(
                f"element {place} of the vector is {_short(each)}, which is not a number"
            )
        if isinstance(each, bool):
            return UsageError(f"element {place} of the vector is {each}, which is not a number")
        if math.isnan(number) or math.isinf(number):
            return UsageError(f"element {place} of the vector is {number}, which cannot be stored")
        if abs(number) > _LARGEST:
            return UsageError(
                f"element {place} of the vector is {number}, which is too large for a 32-bit float"
            )
    return UsageError(f"{_short(elements)} is not a vector; give a list or an array of numbers")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


class VectorAttr(Attr[Vector]):
    """A field that holds a vector with a fixed number of dimensions."""

    def __init__(self, options: FieldOptions, dimensions: int) -> None:
        super().__init__(options)
        self.dimensions = dimensions

    def bind(self, annotation: Any) -> None:
        if present_type(annotation) is not Vector:
            raise UsageError(
                f"field {self.name!r} is made by vector(), so its type is Attr[Vector] or Attr[Vector | None]"
            )
        super().bind(with_leaves(annotation, {Vector: Annotated[Vector, self._of_length]}))

    def elements(self, vector: Any) -> list[AttributeValue]:
        """The numbers of a vector in stored form; raises `UsageError` for the wrong length."""
        return [{"N": text_of(each)} for each in self._of_length.vector(vector)]

    @cached_property
    def _of_length(self) -> _OfLength:
        return _OfLength(self.dimensions)

    @cached_property
    def wire(self) -> WireType:
        checked = self._of_length.vector

        def encode(value: Any) -> AttributeValue:
            return {"L": self.elements(value)}

        def read(content: Any) -> Vector:
            return checked([float(each["N"]) for each in content])

        wire = WireType("L", encode, lambda value: read(value["L"]), python=Vector, read=read)
        return optional_type(wire) if is_optional(self.annotation) else wire


class _OfLength:
    """Checks the number of elements; pydantic uses it as the type of the field."""

    __slots__ = ("dimensions",)

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfLength) and other.dimensions == self.dimensions

    def __hash__(self) -> int:
        return self.dimensions

    def vector(self, value: Any) -> Vector:
        vector = Vector(value)
        if len(vector) != self.dimensions:
            raise UsageError(
                f"the vector has {len(vector)} dimensions, and {self.dimensions} are declared"
            )
        return vector

    def _validated(self, value: Any) -> Vector:
        from pydantic_core import PydanticCustomError

        try:
            return self.vector(value)
        except UsageError as error:
            raise PydanticCustomError("vector", "{why}", {"why": str(error)}) from None

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            self._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(
                list, when_used="json", return_schema=core_schema.list_schema()
            ),
        )

    def __get_pydantic_json_schema__(self, _schema: Any, _handler: Any) -> dict[str, Any]:
        return {
            "type": "array",
            "items": {"type": "number"},
            "minItems": self.dimensions,
            "maxItems": self.dimensions,
        }


def text_of(number: float) -> str:
    """A number of a vector in DynamoDB's notation."""
    text = repr(number)
    return text.removesuffix(".0") if text != "-0.0" else "0"


def vector(
    dimensions: int,
    *,
    default: None = MISSING,
    name: str | None = None,
    description: str | None = None,
    hidden: bool = False,
) -> Any:
    """Declare a field with a vector, such as a model's embedding of a text: `embedding: Attr[Vector] = vector(384)`.

    A `VectorIndex` finds the nearest ones. A field that may have no vector has the type `Attr[Vector | None]`.
    """
    if type(dimensions) is not int or not 1 <= dimensions <= limits.VECTOR_DIMENSIONS:
        raise UsageError(
            f"vector({dimensions!r}): a vector has 1 to {limits.VECTOR_DIMENSIONS} dimensions"
        )
    return VectorAttr(
        FieldOptions(default=default, name=name, description=description, hidden=hidden), dimensions
    )
