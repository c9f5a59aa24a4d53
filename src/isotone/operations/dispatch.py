"""From the name of an action and the JSON of its request to the JSON of its answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from isotone.engine import maintenance
from isotone.engine.engine import Engine
from isotone.errors import (
    ApiError,
    InternalServerError,
    ResourceNotFoundException,
    StorageBusy,
    StorageError,
    UnknownOperationException,
    ValidationException,
)
from isotone.operations import (
    batch_get_item,
    batch_write_item,
    create_table,
    delete_item,
    delete_table,
    describe_endpoints,
    describe_limits,
    describe_stream,
    describe_table,
    describe_time_to_live,
    get_item,
    get_records,
    get_shard_iterator,
    list_streams,
    list_tables,
    list_tags_of_resource,
    put_item,
    query,
    scan,
    tag_resource,
    transact_get_items,
    transact_write_items,
    untag_resource,
    update_item,
    update_table,
    update_time_to_live,
)
from isotone.operations.action import Action, encode_answer
from isotone.operations.decoding import decode, explain

log = logging.getLogger("isotone")

ACTIONS: Final[dict[str, Action]] = {
    module.ACTION.name: module.ACTION
    for module in (
        batch_get_item,
        batch_write_item,
        create_table,
        delete_item,
        delete_table,
        describe_endpoints,
        describe_limits,
        describe_stream,
        describe_table,
        describe_time_to_live,
        get_item,
        get_records,
        get_shard_iterator,
        list_streams,
        list_tables,
        list_tags_of_resource,
        put_item,
        query,
        scan,
        tag_resource,
        transact_get_items,
        transact_write_items,
        untag_resource,
        update_item,
        update_table,
        update_time_to_live,
    )
}
_GROUPED: Final = frozenset(name for name, action in ACTIONS.items() if action.grouped)


class Service:
    """A database as its clients see it. Every method may be called from any thread."""

    __slots__ = ("engine",)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def execute(self, operation: str, body: bytes) -> bytes:
        """Carry out one request; raises `ApiError` where the service would answer with an error."""
        action = ACTIONS.get(operation)
        if action is None:
            raise UnknownOperationException
        try:
            return encode_answer(action.run(self.engine, decode(operation, body)))
        except (ValidationException, ResourceNotFoundException) as error:
            # The service checks the whole of a request before it looks at any table.
            raise explain(operation, body) or error from None

    def is_write(self, operation: str) -> bool:
        """Whether requests of this action gain from being committed together."""
        return operation in _GROUPED

    def execute_many(self, requests: Sequence[tuple[str, bytes]]) -> list[bytes | ApiError]:
        """Carry out requests in one transaction: one wait for the disk, however many they are.

        Each is answered as if it had come alone. None is answered before all are on the disk.
        """
        if len(requests) > 1:
            try:
                with self.engine.writing:
                    return [self._answer(*request) for request in requests]
            except StorageBusy as error:
                # Each alone would wait as long again for the same lock.
                return [InternalServerError(str(error))] * len(requests)
            except Exception:
                # Undone as a whole; each alone tells which of them it was.
                self.engine.abandon()
                log.debug("a group of %d writes was undone", len(requests), exc_info=True)
        return [self._answer_alone(*request) for request in requests]

    def maintain(self) -> float:
        """Do a slice of background work; the seconds after which to call again."""
        return maintenance.step(self.engine)

    def close(self) -> None:
        """Close the database."""
        self.engine.close()

    def _answer(self, operation: str, body: bytes) -> bytes | ApiError:
        try:
            return self.execute(operation, body)
        except ApiError as error:
            return error

    def _answer_alone(self, operation: str, body: bytes) -> bytes | ApiError:
        try:
            return self._answer(operation, body)
        except StorageError as error:
            return InternalServerError(str(error))
        except Exception:
            log.exception("%s failed", operation)
            return InternalServerError("Internal server error")
