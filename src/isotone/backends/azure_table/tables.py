"""The tables of an account and their names in Azure; a table of Isotone's own lists them (`isotonetables`).

A table in Azure has a name of 3 to 63 letters and digits, and neither key schema nor types. So one table,
`isotonetables`, has an entity for each table of DynamoDB, with its CreateTable request and its name in Azure. That is
the same name if Azure allows it: `orders` is `orders`, but `my-orders.2024` is `myorders2024` and eight digits of a
hash.

CreateTable lists a table before it creates it in Azure; DeleteTable deletes it in Azure before it removes it from the
list. After a crash in between, repeating the call finishes the work.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Final

import msgspec

from isotone.backends.azure_table import keys
from isotone.backends.azure_table.entities import PARTITION, ROW, Entity
from isotone.backends.azure_table.evaluation import Evaluator, StoredDefinition
from isotone.backends.azure_table.service import (
    Absent,
    Conflict,
    DropTable,
    FoundEntity,
    GetEntity,
    InsertEntity,
    ListEntities,
    MakeTable,
    RemoveEntity,
    Replace,
    Steps,
    TableExists,
    TableGone,
    WriteEntity,
)
from isotone.backends.interface import Request, Response
from isotone.errors import (
    ApiError,
    ResourceInUseException,
    ResourceNotFoundException,
    Unsupported,
)

REGISTRY: Final = "isotonetables"
_TABLES: Final = "tables"  # the PartitionKey of all its entities

_KNOWN_FOR: Final = 60.0  # seconds before a table's definition is read again
_PAGE: Final = 1000
_SAME_NAME: Final = re.compile("[a-z][a-z0-9]{2,49}")
_RESERVED: Final = frozenset((REGISTRY, "tables"))

_NO_INDEX: Final = (
    "indexes; write a second item whose key is the index's, or use an engine with indexes"
)
# Members of CreateTable that Azure does not support, and what to do instead.
_LACKING: Final[Mapping[str, str]] = {
    "GlobalSecondaryIndexes": _NO_INDEX,
    "LocalSecondaryIndexes": _NO_INDEX,
    "VectorIndexes": "vector indexes; use an engine that has them",
    "StreamSpecification": "streams; use an engine that has them",
}


def azure_name(name: str) -> str:
    """The name of a table in Azure.

    >>> azure_name("orders"), azure_name("my-orders.2024")
    ('orders', 'myorders2024862abcd7')
    """
    if _SAME_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    letters = re.sub("[^a-z0-9]", "", name.lower())
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return ("t" + letters if not letters[:1].isalpha() else letters)[:50] + digest


class Tables:
    """The tables of an account, with recently read definitions cached."""

    __slots__ = ("_evaluator", "_known")

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[str, tuple[float, StoredDefinition]] = {}

    def find(self, name: str) -> Steps[StoredDefinition | None]:
        """The table with a name or an ARN; None if there is none. Reads an entity at most once a minute."""
        plain = name.rpartition(":table/")[2] if isinstance(name, str) else ""
        known = self._known.get(plain)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        definition = yield from self._read(plain)
        if definition is None:
            self._known.pop(plain, None)
        else:
            self._remember(definition)
        return definition

    def forget(self) -> None:
        """Clear the cache of definitions."""
        self._known.clear()

    def _remember(self, definition: StoredDefinition) -> None:
        self._known[definition.name] = (time.monotonic() + _KNOWN_FOR, definition)

    def _read(self, name: str) -> Steps[StoredDefinition | None]:
        try:
            found = yield GetEntity(REGISTRY, _TABLES, keys.encode_text(name))
        except (Absent, TableGone):
            return None
        return _definition(found)

    def create(self, request: Request) -> Steps[Response]:
        """Create a table. Raises `Unsupported` if it needs a feature that Azure lacks."""
        definition = StoredDefinition(
            _plain(request),
            azure_name(request.get("TableName") or ""),
            time.time(),
            str(uuid.uuid4()),
        )
        self._evaluator.refuse("CreateTable", definition.request)
        _check_supported(definition.request)
        entity = _entity(definition)
        is_listed = yield from self._list(entity)
        try:
            yield MakeTable(definition.azure_name)
        except TableExists:
            if not is_listed and (yield from self._unlist(definition)):
                raise ResourceInUseException(
                    f"Azure has a table {definition.azure_name!r} that Isotone did not create; use another name"
                ) from None
            raise ResourceInUseException(f"Table already exists: {definition.name}") from None
        except ApiError as error:
            # After a 5xx the table may have been created. It stays in the list, so that a later
            # call finishes it.
            if not is_listed and error.status < 500:
                yield from self._unlist(definition)
            raise
        if is_listed:  # a table that was partly created or deleted before a crash
            yield WriteEntity(REGISTRY, Replace(entity))
        self._remember(definition)
        return {"TableDescription": self._description(definition, "CREATING")}

    def _list(self, entity: Entity) -> Steps[bool]:
        """Add a table to the list; returns whether it was there."""
        for _ in range(2):
            try:
                yield WriteEntity(REGISTRY, InsertEntity(entity))
            except TableGone:
                with suppress(TableExists):
                    yield MakeTable(REGISTRY)
            except Conflict:
                return True
            else:
                return False
        raise ResourceInUseException(f"the table {REGISTRY!r} is being deleted; try again later")

    def _unlist(self, definition: StoredDefinition) -> Steps[bool]:
        """Remove a table from the list, unless another process has added it again; returns whether it did."""
        try:
            found = yield GetEntity(REGISTRY, _TABLES, keys.encode_text(definition.name))
            if _definition(found).id != definition.id:
                return False
            yield WriteEntity(
                REGISTRY, RemoveEntity(_TABLES, keys.encode_text(definition.name), found.etag)
            )
        except Conflict:
            return False
        return True

    def delete(self, request: Request) -> Steps[Response]:
        """Delete a table with all its items."""
        definition = yield from self._existing("DeleteTable", request)
        self._evaluator.execute("DeleteTable", request, [definition])
        yield DropTable(definition.azure_name)
        entity = _entity(definition)
        yield WriteEntity(REGISTRY, RemoveEntity(entity[PARTITION], entity[ROW]))
        self.forget()
        return {"TableDescription": self._description(definition, "DELETING")}

    def describe(self, request: Request) -> Steps[Response]:
        """Describe a table. There are no counts, because Azure does not count entities."""
        definition = yield from self._existing("DescribeTable", request)
        return {"Table": self._description(definition, "ACTIVE")}

    def names(self, request: Request) -> Steps[Response]:
        """ListTables: the names, in order."""
        self._evaluator.refuse("ListTables", request)
        start, limit = request.get("ExclusiveStartTableName", ""), request.get("Limit", 100)
        names = sorted(each.name for each in (yield from self._all()) if each.name > start)
        response: Response = {"TableNames": names[:limit]}
        if len(names) > limit:
            response["LastEvaluatedTableName"] = names[limit - 1]
        return response

    def _all(self) -> Steps[list[StoredDefinition]]:
        found: list[StoredDefinition] = []
        token: Any = None
        while True:
            try:
                entities, token = yield ListEntities(
                    REGISTRY, f"{PARTITION} eq '{_TABLES}'", _PAGE, token
                )
            except TableGone:
                return found
            found += map(_definition, entities)
            if token is None:
                return found

    def _existing(self, operation: str, request: Request) -> Steps[StoredDefinition]:
        name = request.get("TableName", "")
        self._known.pop(name, None)
        definition = yield from self.find(name)
        if definition is None:
            self._evaluator.refuse(operation, request)
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {name} not found"
            )
        return definition

    def _description(self, definition: StoredDefinition, status: str) -> Response:
        request = {"TableName": definition.name}
        response, _ = self._evaluator.execute("DescribeTable", request, [definition])
        description: Response = response["Table"]
        for unknown in ("ItemCount", "TableSizeBytes"):
            description.pop(unknown, None)
        return description | {
            "TableStatus": status,
            "TableId": definition.id,
            "CreationDateTime": definition.created,
        }


def _plain(request: Request) -> dict[str, Any]:
    """The request in plain JSON types."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(request))
    return plain


def _check_supported(request: Mapping[str, Any]) -> None:
    for member, lacking in _LACKING.items():
        value = request.get(member)
        if value and (member != "StreamSpecification" or value.get("StreamEnabled")):
            named = "".join(_index_names(value) if isinstance(value, Sequence) else [])
            raise Unsupported(
                f"table {request['TableName']!r} declares {member}{named}, and Azure Table storage has no {lacking}"
            )


def _index_names(indexes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield " " + ", ".join(repr(each.get("IndexName")) for each in indexes)


def _entity(definition: StoredDefinition) -> Entity:
    return {
        PARTITION: _TABLES,
        ROW: keys.encode_text(definition.name),
        "AzureName": definition.azure_name,
        "Created": definition.created,
        "Id": definition.id,
        "CreateTable": msgspec.json.encode(definition.request).decode(),
    }


def _definition(found: FoundEntity) -> StoredDefinition:
    entity = found.entity
    request = msgspec.json.decode(entity["CreateTable"], type=dict[str, Any])
    return StoredDefinition(request, entity["AzureName"], float(entity["Created"]), entity["Id"])
