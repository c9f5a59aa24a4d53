"""What a write of the library is: planned as actions, and explained where one is refused.

A `Write` plans *actions*, the entries of a transaction. Some follow from what is stored (index keys made
of fields that the caller does not know, unique values to release): such a write looks at the item, and
holds in the condition of its action whatever it made use of. `carrying` sends the plans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from isotone.errors import WriteRefused
from isotone.expressions import nodes
from isotone.model.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema

R = TypeVar("R")

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]


class Action(NamedTuple):
    """One entry of a transaction.

    `explain` takes the item that stood in the way and gives the error to raise, or None where the action
    was planned for an item that is no longer so, and can be planned again.
    """

    kind: Kind
    members: dict[str, Any]
    explain: Callable[[Item | None], WriteRefused | None]


class Write(ABC, Generic[R]):
    """One write of the library, to be carried out once.

    `reads` says whether the item has to be known before the write can be planned. `current` is the item
    as it was last seen, where `is_seen`. `further` is a condition besides the write's own, `at_target`
    one on what lies at its target. `otherwise` makes the error of a condition that does not hold.
    """

    schema: EntitySchema
    reads: bool = False
    is_seen: bool = False
    current: Item | None = None
    further: nodes.ConditionNode | None = None
    otherwise: Callable[[Any], WriteRefused] | None = None
    at_target: nodes.ConditionNode | None = None

    @property
    @abstractmethod
    def key(self) -> Item:
        """The primary key of the item."""

    @property
    def target(self) -> Item | None:
        """The primary key that the item goes to, where it is another one, and known beforehand."""
        return None

    def prepare(self) -> None:
        """Run the hooks that come before."""

    @abstractmethod
    def plan(self, now: datetime) -> list[Action]:
        """What to send; the first action is that of the item itself.

        Raises `Unknown` where that takes the item, which is then read.
        """

    @abstractmethod
    def finish(self, attributes: Item | None) -> R:
        """The result, after success; `attributes` are those that a plain write answered with."""

    def saw(self, item: Item | None) -> None:
        """Take note of the item as it is."""
        self.current, self.is_seen = item, True


def read_item(schema: EntitySchema, key: Item) -> Steps[Item | None]:
    """The item as it is now. Cost: one consistent read."""
    request = {"TableName": schema.table.name, "Key": key, "ConsistentRead": True}
    response = yield Call("GetItem", request)
    item: Item | None = response.get("Item")
    return item


def identify(schema: EntitySchema, values: Mapping[str, Any]) -> Item:
    """The primary key that these fields make; raises `UsageError` for any other set of fields."""
    return schema.identify(values)
