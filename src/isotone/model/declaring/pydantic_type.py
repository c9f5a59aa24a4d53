"""Entities in pydantic and FastAPI: input from outside, `model_dump`, and JSON schema.

Input is what a client may send: the fields by name, without those that the library maintains. The latter are `readOnly`
in the JSON schema and ignored in input, so that a client may send back what it received. Other unknown names are
refused. An instance of the entity passes unchanged.

JSON has fewer types than an item. Times, decimals, ids and enums become texts, as pydantic writes them; bytes become
base64.

pydantic is loaded, and schemas are built, at first use.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, get_args

from isotone.errors import UsageError
from isotone.model.declaring.field_codecs import Codec
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import StringSlot
from isotone.model.declaring.value_validation import (
    accepted_type,
    aware_leaves,
    default_of,
    with_leaves,
)
from isotone.model.declaring.wire_types import is_optional, present_type

if TYPE_CHECKING:
    from pydantic import ValidationInfo

    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

_TITLE: Final = "isotone_title"
_ENTITY: Final = "isotone_patch_of"
_EXACT_DIGITS: Final = 15  # a float preserves every decimal number with this many digits


class Adapter:
    """pydantic's view of one entity."""

    def __init__(self, schema: EntitySchema) -> None:
        self._schema = schema
        self._entity = schema.entity

    # For callers

    def validate(self, value: Any, **options: Any) -> Any:
        """Validate input in Python types; raises `pydantic.ValidationError`."""
        return self._validator.validate_python(value, **options)

    def validate_json(self, text: str | bytes | bytearray, **options: Any) -> Any:
        """Validate input in JSON; raises `pydantic.ValidationError`."""
        return self._validator.validate_json(text, **options)

    def dump(self, entity: Entity, **options: Any) -> Any:
        """The entity's fields that were read, without hidden ones."""
        return self._types.dump_python(entity, **options)

    def dump_json(self, entity: Entity, **options: Any) -> str:
        """The same, as JSON."""
        text: bytes = self._types.dump_json(entity, **options)
        return text.decode()

    def json_schema(self, **options: Any) -> dict[str, Any]:
        """The JSON schema of input, or of output with mode="serialization"."""
        schema: dict[str, Any] = self._types.json_schema(**options)
        return schema

    @cached_property
    def _types(self) -> Any:
        from pydantic import TypeAdapter

        return TypeAdapter(self._entity)

    @cached_property
    def _validator(self) -> Any:
        """pydantic's own validator, but with the entity's name in messages."""
        from pydantic_core import SchemaValidator

        return SchemaValidator(self._types.core_schema, {"title": self._entity.__name__})

    # For pydantic

    def core_schema(self, handler: Any) -> Any:
        """pydantic's core schema, which says how to read and write the entity."""
        from pydantic_core import core_schema

        from isotone.model.declaring.foreign_types import ENTITY

        entity, fields = self._entity, self._schema.fields
        name = entity.__name__
        padded = self.in_texts
        given = {each: _input(field, handler, each in padded) for each, field in fields.items()}
        read = core_schema.no_info_after_validator_function(
            self._make,
            core_schema.model_fields_schema(
                {each: core_schema.model_field(schema) for each, schema in given.items()},
                model_name=name,
                extra_behavior="forbid",
            ),
        )
        shown = {
            each: _output(field, handler)
            for each, field in fields.items()
            if not field.options.hidden
        }
        written = core_schema.typed_dict_schema(
            {each: core_schema.typed_dict_field(schema) for each, schema in shown.items()}
        )
        return core_schema.json_or_python_schema(
            json_schema=read,
            python_schema=core_schema.no_info_wrap_validator_function(self._pass_instance, read),
            serialization=core_schema.wrap_serializer_function_ser_schema(_dump, schema=written),
            ref=reference(entity),
            metadata={ENTITY: name},
        )

    def json_schema_of(self, schema: Any, handler: Any) -> dict[str, Any]:
        """The JSON schema, completed from the declaration: descriptions, and which fields the library maintains."""
        json = _json_schema(schema, handler)
        definition = handler.resolve_ref_schema(json)
        definition |= {"title": self._entity.__name__, "additionalProperties": False}
        if self._entity.__doc__:
            definition["description"] = inspect.cleandoc(self._entity.__doc__)
        self.describe(definition)
        if handler.mode == "serialization":
            definition["required"] = list(definition["properties"])
        return json

    def describe(self, definition: dict[str, Any]) -> None:
        """Complete a JSON schema's properties with what the declaration says about these fields."""
        for name, member in definition["properties"].items():
            field = self._schema.fields[name]
            if field.options.description is not None:
                member["description"] = field.options.description
            if not is_input(field):
                member["readOnly"] = True
            elif field.options.hidden:
                member["writeOnly"] = True

    def _make(self, validated: tuple[dict[str, Any], Any, Any]) -> Entity:
        """Make an entity from validated input."""
        given, fields = validated[0], self._schema.fields
        values = {
            name: given[name] if is_input(field) else default_of(field)
            for name, field in fields.items()
        }
        entity = self._entity.from_trusted(values)
        entity._compute()
        return entity

    @cached_property
    def in_texts(self) -> set[str]:
        """The fields that are part of string keys."""
        return {
            component.field.name
            for key in self._schema.keys.values()
            for slot in key.slots
            if isinstance(slot, StringSlot)
            for component in slot.components
        }

    def _pass_instance(self, value: Any, read: Any) -> Any:
        return value if isinstance(value, self._entity) else read(value)

    # For the standard library

    @cached_property
    def as_dataclass(self) -> Any:
        """A dataclass with the entity's fields, which stands in for it in `dataclasses`."""
        members = [
            (name, _shown_type(field), dataclasses.field(**_default_of(field)))
            for name, field in self._schema.fields.items()
        ]
        return dataclasses.make_dataclass(
            self._entity.__name__, members, init=False, repr=False, eq=False, kw_only=True
        )


def _json_schema(schema: Any, handler: Any) -> dict[str, Any]:
    """The JSON schema of the input or output, which pydantic cannot derive from a function."""
    if handler.mode == "serialization":
        reference = {"ref": schema["ref"]} if "ref" in schema else {}
        schema = {**schema["serialization"]["schema"], **reference}
    json: dict[str, Any] = handler(schema)
    return json


def is_input(field: Attr[Any]) -> bool:
    """Whether a client may send the field."""
    return field.options.role in ("plain", "expires") and not field.options.read_only


def _dump(entity: Entity, write: Callable[[Any], Any]) -> Any:
    return write(visible(entity))


def visible(entity: Entity) -> dict[str, Any]:
    """The fields that were read, without hidden ones."""
    fields, values = entity.__schema__.fields, entity.__dict__
    return {
        name: values[name]
        for name, field in fields.items()
        if name in values and not field.options.hidden
    }


def reference(kind: Any, *arguments: Any) -> str:
    """The name of a type among a schema's definitions, as pydantic forms it."""
    name = f"{kind.__module__}.{kind.__qualname__}:{id(kind)}"
    return f"{name}[{','.join(map(reference, arguments))}]" if arguments else name


def _shown_type(field: Attr[Any]) -> Any:
    """The type of a field in a dataclass. A hidden field can be given to `replace`, but is not among the `fields`."""
    return dataclasses.InitVar[Any] if field.options.hidden else field.annotation


def _default_of(field: Attr[Any]) -> dict[str, Any]:
    options = field.options
    if options.hidden:
        return {"default": None}
    if options.role == "computed":
        return {"init": False}
    if options.default_factory is not None:
        return {"default_factory": options.default_factory}
    return {"default": options.default} if options.has_default else {}


# The schema of a field


def _input(field: Attr[Any], handler: Any, is_in_text: bool) -> Any:
    from pydantic_core import core_schema

    options = field.options
    if options.read_only and options.required and not is_optional(field.annotation):
        refused = core_schema.no_info_wrap_validator_function(_refuse, _output(field, handler))
        return core_schema.with_default_schema(
            refused, default_factory=_nothing, validate_default=True
        )
    if not is_input(field):
        ignored = core_schema.no_info_wrap_validator_function(_ignore, _output(field, handler))
        return core_schema.with_default_schema(ignored, default_factory=_nothing)
    schema = handler.generate_schema(_input_type(field, is_in_text))
    if options.default_factory is not None:
        return core_schema.with_default_schema(schema, default_factory=options.default_factory)
    if options.has_default or is_optional(field.annotation):
        return core_schema.with_default_schema(schema, default=default_of(field))
    return schema


def _output(field: Attr[Any], handler: Any) -> Any:
    from pydantic_core import core_schema

    options = field.options
    annotation = (
        field.annotation if options.role in ("computed", "version") else accepted_type(field)
    )
    schema = handler.generate_schema(with_leaves(annotation, _json_leaves(field)))
    if options.has_default and options.role in ("plain", "expires"):
        return core_schema.with_default_schema(schema, default=options.default)
    return schema


def _ignore(_value: Any, _read: Any) -> None:
    return None


def _refuse(_value: Any, _read: Any) -> None:
    from pydantic_core import PydanticCustomError

    raise PydanticCustomError(
        "read_only",
        "the field is read-only and has no default, so that only the program can make the entity",
    )


def _nothing() -> None:
    return None


def _input_type(field: Attr[Any], is_in_text: bool) -> Any:
    """The type of a field in input: as JSON spells it, and within its bounds."""
    leaves = {**aware_leaves(), **_json_leaves(field)}
    bounds = _bounds(field, is_in_text)
    if bounds:
        from pydantic import Field

        python = present_type(field.annotation)
        inner, *further = get_args(leaves[python]) if python in leaves else (python,)
        leaves[python] = typing.Annotated[(inner, Field(**bounds), *further)]
    return accepted_type(field, leaves)


def _bounds(field: Attr[Any], is_in_text: bool) -> dict[str, Any]:
    """The declared range of a number. A string key has no room for a sign unless `min` is negative."""
    options, python = field.options, present_type(field.annotation)
    if python not in (int, Decimal):
        return {}
    least = options.min if options.min is not None or not is_in_text else 0
    bounds = {"ge": least, "le": options.max}
    if python is Decimal:
        bounds["decimal_places"] = options.scale
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _json_leaves(field: Attr[Any]) -> Mapping[Any, Any]:
    """Replacements for types that JSON lacks, or that pydantic does not know."""
    from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

    python = present_type(field.annotation)
    codec = field.options.codec
    own = {} if codec is None or _is_known(python) else {python: _by_codec(python, codec)}
    return own | {
        Decimal: typing.Annotated[Decimal, BeforeValidator(_exact_number)],
        bytes: typing.Annotated[
            bytes,
            BeforeValidator(_bytes_of_base64),
            PlainSerializer(_base64_of_bytes, when_used="json"),
            WithJsonSchema({"type": "string", "format": "base64"}),
        ],
    }


def _is_known(python: Any) -> bool:
    """Whether pydantic has a schema for a type."""
    from pydantic import PydanticSchemaGenerationError, TypeAdapter

    try:
        TypeAdapter(python)
    except PydanticSchemaGenerationError:
        return False
    return True


def _by_codec(python: type[Any], codec: Codec[Any, Any]) -> Any:
    """A class that pydantic does not know: JSON contains its values as the codec encodes them."""
    from pydantic import GetPydanticSchema, WithJsonSchema
    from pydantic_core import PydanticCustomError, core_schema

    def read(value: Any) -> Any:
        if isinstance(value, python):
            return value
        try:
            return codec.decode(value)
        except Exception as error:
            raise PydanticCustomError("codec", "not a {name}", {"name": python.__name__}) from error

    schema = core_schema.no_info_plain_validator_function(
        read,
        serialization=core_schema.plain_serializer_function_ser_schema(
            codec.encode, when_used="json"
        ),
    )
    return typing.Annotated[
        Any, GetPydanticSchema(lambda _source, _handler: schema), WithJsonSchema({})
    ]


def _exact_number(value: Any, info: ValidationInfo) -> Any:
    """A JSON number as the exact decimal; refused if a float may have lost digits."""
    if isinstance(value, str) and info.mode == "json":
        # Pydantic's own type for decimals in JSON, also if strict.
        with suppress(InvalidOperation):
            return Decimal(value)
    if not isinstance(value, float):
        return value
    number = Decimal(repr(value))
    if number.is_finite() and len(number.normalize().as_tuple().digits) > _EXACT_DIGITS:
        from pydantic_core import PydanticCustomError

        raise PydanticCustomError(
            "inexact_number",
            "a JSON number of more than {digits} digits is not read exactly; send it as a string",
            {"digits": _EXACT_DIGITS},
        )
    return number


def _bytes_of_base64(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        from pydantic_core import PydanticCustomError

        raise PydanticCustomError("base64", "bytes in JSON are written as base64") from None


def _base64_of_bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


# Patches


def patch_core_schema(patch: type[Any], source: Any, handler: Any) -> Any:
    """The core schema of a patch: any of the entity's fields, without its primary key's."""
    from pydantic_core import core_schema

    (entity,) = get_args(source) or (None,)
    schema: EntitySchema | None = getattr(entity, "__schema__", None)
    if schema is None:
        raise UsageError(f"{source!r} is a patch of no entity of a table; write Patch[Order]")
    padded = schema.adapter.in_texts
    fields, shown = {}, {}
    for name, field in schema.fields.items():
        if name in schema.identity or not is_input(field):
            continue
        type_of = handler.generate_schema(_input_type(field, name in padded))
        fields[name] = core_schema.model_field(
            core_schema.with_default_schema(type_of, default_factory=_nothing)
        )
        if field.options.hidden:
            continue
        shown[name] = core_schema.typed_dict_field(
            handler.generate_schema(with_leaves(field.annotation, _json_leaves(field))),
            required=False,
        )

    def make(validated: tuple[dict[str, Any], Any, set[str]]) -> Any:
        return patch(entity, {name: validated[0][name] for name in fields if name in validated[2]})

    read = core_schema.no_info_after_validator_function(
        make,
        core_schema.model_fields_schema(
            fields, model_name=f"{patch.__name__}[{entity.__name__}]", extra_behavior="forbid"
        ),
    )

    def pass_instance(value: Any, read: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, patch) and value.entity is entity else read(value)

    return core_schema.json_or_python_schema(
        json_schema=read,
        python_schema=core_schema.no_info_wrap_validator_function(pass_instance, read),
        serialization=core_schema.wrap_serializer_function_ser_schema(
            lambda value, write: write({name: value[name] for name in shown if name in value}),
            schema=core_schema.typed_dict_schema(shown),
        ),
        ref=reference(patch, entity),
        metadata={_ENTITY: entity},
    )


def patch_json_schema(schema: Any, handler: Any) -> dict[str, Any]:
    """The JSON schema of a patch, completed from the entity's declaration."""
    json = _json_schema(schema, handler)
    entity = schema["metadata"][_ENTITY]
    definition = handler.resolve_ref_schema(json)
    definition |= {"title": f"Patch[{entity.__name__}]", "additionalProperties": False}
    entity.__schema__.adapter.describe(definition)
    return json


# Pages


def page_core_schema(page: type[Any], make: Callable[..., Any], source: Any, handler: Any) -> Any:
    """The core schema of a page: its items and its cursors."""
    from pydantic_core import core_schema

    items = get_args(source) or (Any,)
    cursor = core_schema.nullable_schema(core_schema.str_schema())
    optional = core_schema.with_default_schema(cursor, default=None)
    members = core_schema.typed_dict_schema(
        {
            "items": core_schema.typed_dict_field(
                core_schema.list_schema(handler.generate_schema(items[0]))
            ),
            "cursor": core_schema.typed_dict_field(optional),
            "previous": core_schema.typed_dict_field(optional),
        }
    )
    read = core_schema.no_info_after_validator_function(lambda given: make(**given), members)
    known = isinstance(items[0], type)
    return core_schema.json_or_python_schema(
        json_schema=read,
        python_schema=core_schema.no_info_wrap_validator_function(
            lambda value, read: value if isinstance(value, page) else read(value), read
        ),
        serialization=core_schema.wrap_serializer_function_ser_schema(
            lambda value, write: write({name: getattr(value, name) for name in members["fields"]}),
            schema=members,
        ),
        ref=reference(page, items[0]) if known else None,
        metadata={_TITLE: {"title": f"{page.__name__}[{items[0].__name__}]"}} if known else None,
    )


def page_json_schema(schema: Any, handler: Any) -> dict[str, Any]:
    """The JSON schema of a page, with its title."""
    json = _json_schema(schema, handler)
    page = handler.resolve_ref_schema(json)
    page |= schema.get("metadata", {}).get(_TITLE, {})
    return json
