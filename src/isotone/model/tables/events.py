"""What a record of a stream tells: which entity changed, what it was, and what it is now.

    for event in store.changes(shop):
        if event.kind == "modified" and isinstance(event.after, Order):
            print(event.before.status, "→", event.after.status)

An event decodes its entities when they are asked for, so that one that nobody looks at costs next to
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, cast

from typing_extensions import TypeVar

from isotone.errors import MalformedKey, UsageError
from isotone.model.declaring.table import Table
from isotone.values.json import item_from_wire
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity", default="Entity")

EventKind = Literal["inserted", "modified", "removed"]

_KINDS: Final[Mapping[str, EventKind]] = {
    "INSERT": "inserted",
    "MODIFY": "modified",
    "REMOVE": "removed",
}
_TIME_TO_LIVE: Final = "dynamodb.amazonaws.com"


class Event(Generic[E]):
    """One change of one item, as the stream of its table has it.

    `record` is DynamoDB's own, `shard` the id of the shard that it lay in.
    """

    def __init__(self, table: Table, shard: str, record: Mapping[str, Any]) -> None:
        self.table = table
        self.shard = shard
        self.record = record
        self._change: Mapping[str, Any] = record["dynamodb"]

    @property
    def id(self) -> str:
        """The same for this change whenever it is read, and no other's: a key for idempotent writes."""
        given: str = self.record["eventID"]
        return given

    @property
    def kind(self) -> EventKind:
        """Whether the item was inserted, modified or removed."""
        return _KINDS[self.record["eventName"]]

    @property
    def sequence(self) -> str:
        """The sequence number: later changes of items with the same partition key have greater ones."""
        number: str = self._change["SequenceNumber"]
        return number

    @property
    def time(self) -> datetime:
        """When the change was made, to the second."""
        return datetime.fromtimestamp(self.timestamp, UTC)

    @property
    def timestamp(self) -> float:
        """`time` as seconds since the epoch."""
        return float(self._change["ApproximateCreationDateTime"])

    @property
    def expired(self) -> bool:
        """Whether the item was removed because its time was over."""
        return _TIME_TO_LIVE in (self.record.get("userIdentity") or {}).values()

    @cached_property
    def keys(self) -> dict[str, Any]:
        """The attributes of the item's primary key, as plain values."""
        return item_from_wire(self._change["Keys"])

    @cached_property
    def before(self) -> E | None:
        """The entity before the change.

        None where it was inserted, where the stream keeps no old images, and where it is none of the
        table's entities. Raises `InvalidEntity` where a field is missing that has no default.
        """
        return self._entity("OldImage")

    @cached_property
    def after(self) -> E | None:
        """The entity after the change.

        None where it was removed, where the stream keeps no new images, and where it is none of the
        table's entities. Raises `InvalidEntity` where a field is missing that has no default.
        """
        return self._entity("NewImage")

    @property
    def entity(self) -> E:
        """The entity as the event knows it last: after the change, before it where it was removed.

        Raises `UsageError` where the stream shows neither.
        """
        found = self.after if self.after is not None else self.before
        if found is None:
            raise UsageError(
                f"the stream of table {self.table.name!r} shows no entity for this event; "
                "declare the table with stream='NEW_AND_OLD_IMAGES', or look at event.keys"
            )
        return found

    @cached_property
    def schema(self) -> EntitySchema | None:
        """What declared the entity; None where none of the table's entities is like it.

        It is found by the tag, or by the form of the key where the stream shows no image.
        """
        image = self._change.get("NewImage") or self._change.get("OldImage")
        if image is None:
            return self._schema_of_keys()
        tag = image.get(self.table.tag)
        if tag is not None:
            return self.table.entities.get(tag.get("S", ""))
        only = tuple(self.table.entities.values())
        return only[0] if len(only) == 1 else None

    def _schema_of_keys(self) -> EntitySchema | None:
        known = self.table.entities.values()
        fitting = [schema for schema in known if _fits(schema, self._change["Keys"])]
        return fitting[0] if len(fitting) == 1 else None

    def _entity(self, member: str) -> E | None:
        image: Item | None = self._change.get(member)
        if image is None or self.schema is None:
            return None
        return cast("E", self.schema.from_item(_mended(image), require_all_fields=True))

    def __repr__(self) -> str:
        return f"<{self.kind} {self.keys!r} at {self.sequence}>"


def _mended(image: Item) -> Item:
    """An image whose empty maps are `{"M": {}}`: in streams of DynamoDB Local they are `{}`."""
    return {name: _mended_value(value) for name, value in image.items()}


def _mended_value(value: Any) -> Any:
    if not value:
        return {"M": {}}
    if "M" in value:
        return {"M": _mended(value["M"])}
    if "L" in value:
        return {"L": [_mended_value(each) for each in value["L"]]}
    return value


def _fits(schema: EntitySchema, keys: Item) -> bool:
    """Whether the entity writes keys of this form."""
    try:
        for slot in schema.primary.slots:
            slot.parse(keys[slot.attribute.name])
    except (MalformedKey, KeyError):
        return False
    return True
