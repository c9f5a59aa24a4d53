"""PartiQL actions: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Meta

from isotone import limits
from isotone.engine.consumed_units import per_thread
from isotone.engine.engine import Engine
from isotone.engine.layout import size_of
from isotone.engine.table_indexes import StoredTable
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    DuplicateItemException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.expressions.partiql import (
    AnyStatement,
    DeleteStatement,
    Exists,
    InsertStatement,
    Select,
    UpdateStatement,
    messages,
    parse_statement,
)
from isotone.expressions.partiql.statement_values import parameter
from isotone.operations import transactions
from isotone.operations.action import Answer, action
from isotone.operations.batches import DUPLICATES
from isotone.operations.capacity import CapacityMeter, Charged, add_capacity, meter_for_table
from isotone.operations.item_responses import item_in_response, returned
from isotone.operations.item_writes import ItemChange, read_all, write_if_true
from isotone.operations.long_requests import never_raising
from isotone.operations.query_and_scan import ScanRequest
from isotone.operations.request_members import (
    ApiStructure,
    AttributeValue,
    Flag,
    PositiveInteger,
    ReturnConsumedCapacity,
    ReturnValuesOnConditionCheckFailure,
)
from isotone.operations.statement_reads import (
    Values,
    check_index,
    located,
    select_page,
    single_key,
)
from isotone.operations.statement_writes import (
    RETURN_VALUES,
    Write,
    change_of,
    is_check,
    key_fault,
    target_of,
)
from isotone.operations.table_lookup import named_table
from isotone.values.types import Item

StatementText = Annotated[str, Meta(min_length=1, max_length=limits.STATEMENT_SIZE)]
Parameters = Annotated[list[AttributeValue], Meta(min_length=1)]
NextToken = Annotated[str, Meta(min_length=1, max_length=limits.NEXT_TOKEN_SIZE)]


class ExecuteStatement(ApiStructure, frozen=True):
    """Run one statement."""

    statement: StatementText
    parameters: Parameters | None = None
    consistent_read: Flag | None = None
    next_token: NextToken | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None
    limit: PositiveInteger | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class BatchStatementRequest(ApiStructure, frozen=True):
    """One statement of a batch."""

    statement: StatementText
    parameters: Parameters | None = None
    consistent_read: Flag | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class BatchExecuteStatement(ApiStructure, frozen=True):
    """Run independent statements: all of them read one item each, or all of them write one."""

    statements: Annotated[
        list[BatchStatementRequest], Meta(min_length=1, max_length=limits.BATCH_STATEMENTS)
    ]
    return_consumed_capacity: ReturnConsumedCapacity | None = None


class ParameterizedStatement(ApiStructure, frozen=True):
    """One statement of a transaction."""

    statement: StatementText
    parameters: Parameters | None = None
    return_values_on_condition_check_failure: ReturnValuesOnConditionCheckFailure | None = None


class ExecuteTransaction(ApiStructure, frozen=True):
    """Run all statements or none: all read, or all write or check."""

    transact_statements: Annotated[
        list[ParameterizedStatement], Meta(min_length=1, max_length=limits.TRANSACTION_ITEMS)
    ]
    client_request_token: transactions.ClientRequestToken | None = None
    return_consumed_capacity: ReturnConsumedCapacity | None = None


Requested = ExecuteStatement | BatchStatementRequest | ParameterizedStatement


def parameters_of(request: Requested) -> list[AttributeValue]:
    """The parameters in normal form. A malformed one is reported before the statement is parsed."""
    return [parameter(value) for value in request.parameters or ()]


def parsed(request: Requested, engine: Engine | None = None) -> AnyStatement:
    """The statement of a request; with an engine, the index of a SELECT is checked before its columns."""
    before_columns = None if engine is None else partial(_look_at_index, engine)
    return parse_statement(request.statement, before_columns)


def _look_at_index(engine: Engine, table: str, index: str | None) -> None:
    with engine.reading_beside as engine, suppress(ResourceNotFoundException):
        check_index(named_table(engine, table), index)


# ExecuteStatement


@action("ExecuteStatement")
def execute_statement(engine: Engine, request: ExecuteStatement) -> Answer:
    """Run one statement: read a page, or write one item."""
    parameters = parameters_of(request)
    statement = parsed(request, engine)
    values = statement.bind(parameters)
    match statement:
        case Exists():
            raise ValidationException(messages.EXISTS_ALONE)
        case Select():
            reading = ScanRequest(
                statement.table,
                index_name=statement.index,
                limit=request.limit,
                consistent_read=request.consistent_read,
                return_consumed_capacity=request.return_consumed_capacity,
            )
            with engine.reading_beside as engine:
                table = named_table(engine, statement.table)
                return select_page(engine, table, statement, values, reading, request.next_token)
        case InsertStatement() | UpdateStatement() | DeleteStatement():
            on_failure = request.return_values_on_condition_check_failure
            with engine.writing:
                table = named_table(engine, statement.table)
                change = change_of(table, statement, values, on_failure)
                meter = meter_for_table(statement.table, table, request.return_consumed_capacity)
                item = _written(engine, statement, change, meter)
            answer: dict[str, Any] = {"Items": [] if item is None else [item]}
            if type(meter) is CapacityMeter:
                answer["ConsumedCapacity"] = meter.report()
            return answer


def _written(engine: Engine, statement: Write, change: ItemChange, meter: Charged | None) -> Any:
    """Execute a write; returns what RETURNING asks for, or None."""
    outcome = write_if_true(engine, change, meter)
    if isinstance(statement, InsertStatement) or statement.returning is None:
        return None
    update = statement.update if isinstance(statement, UpdateStatement) else None
    return returned(RETURN_VALUES[statement.returning], update, outcome) or None


# BatchExecuteStatement

_ERROR_CODES: Final[dict[type[ApiError], str]] = {
    ConditionalCheckFailedException: "ConditionalCheckFailed",
    DuplicateItemException: "DuplicateItem",
    ResourceNotFoundException: "ResourceNotFound",
    ValidationException: "ValidationError",
}
_REFUSED: Final = tuple(_ERROR_CODES)


class _BatchedStatement:
    """One statement of a batch: its parsed form, its item's position, and its answer or error."""

    def __init__(self, request: BatchStatementRequest) -> None:
        self.request = request
        self.statement: Select | Write | None = None
        self.values: Values = {}
        self.table: StoredTable | None = None
        self.key: bytes = b""
        self.change: ItemChange | None = None
        self.answer: dict[str, Any] = {}
        self.record: bytes | None = None
        self.item: Any = None

    def parse(self) -> None:
        """Parse the parameters and the statement."""
        parameters = parameters_of(self.request)
        statement = parsed(self.request)
        self.values = statement.bind(parameters)
        if isinstance(statement, Exists):
            raise ValidationException(messages.EXISTS_ALONE)
        self.statement = statement

    def locate(self, engine: Engine) -> None:
        """Locate the item of the statement."""
        assert self.statement is not None
        self.table = named_table(engine, self.statement.table)
        if isinstance(self.statement, Select):
            key = single_key(self.table, self.statement, self.values)
            if key is None:
                raise ValidationException(messages.BATCH_KEY)
            self.key = located(self.table, key)
        else:
            target = target_of(self.table, self.statement, self.values)
            self.answer["TableName"] = self.statement.table
            on_failure = self.request.return_values_on_condition_check_failure
            self.change = change_of(self.table, self.statement, self.values, on_failure, target)
            self.key = self.change.key

    def read(self, engine: Engine) -> None:
        """Read the item of a SELECT."""
        assert isinstance(self.statement, Select)
        assert self.table is not None
        self.record = engine.store.get(self.table.tree, self.key)
        if self.record is not None:
            self.item = item_in_response(self.record, self.statement.projection)
            per_thread.spent.add_items(1, 1)

    def run(
        self, engine: Engine, meters: dict[str, Charged], mode: ReturnConsumedCapacity | None
    ) -> None:
        """Write the item, or answer with the one that was read; counts what it consumes if that is reported."""
        assert self.statement is not None
        assert self.table is not None
        name = self.statement.table
        self.answer["TableName"] = name
        meter = meters.get(name) or meter_for_table(name, self.table, mode)
        if meter is not None:
            meters[name] = meter
        if isinstance(self.statement, Select):
            if meter is not None:
                meter.read(size_of(self.record), consistent=bool(self.request.consistent_read))
            item = self.item
        else:
            assert self.change is not None
            item = _written(engine, self.statement, self.change, meter)
        if item is not None:
            self.answer["Item"] = item

    def attempt(self, step: Callable[[], None]) -> None:
        """Take a step unless an earlier one failed. An error becomes the answer."""
        if "Error" in self.answer:
            return
        try:
            step()
        except _REFUSED as error:
            self._fail(error)

    def _fail(self, error: ApiError) -> None:
        self.answer["Error"] = {
            "Code": _ERROR_CODES[type(error)],
            "Message": error.message,
            **error.members,
        }

    @property
    def reads(self) -> bool:
        return isinstance(self.statement, Select)


@action("BatchExecuteStatement")
def batch_execute_statement(engine: Engine, request: BatchExecuteStatement) -> Answer:
    """Run up to 25 statements; each succeeds or fails on its own."""
    entries = [_BatchedStatement(statement) for statement in request.statements]
    for entry in entries:
        entry.attempt(entry.parse)
    kinds = {entry.reads for entry in entries if entry.statement is not None}
    if len(kinds) > 1:
        raise ValidationException(messages.READ_AND_WRITE)
    meters: dict[str, Charged] = {}
    with engine.writing if False in kinds else engine.reading_beside as engine:
        for entry in entries:
            entry.attempt(partial(entry.locate, engine))
        _refuse_duplicates(entries)
        if False in kinds:  # what takes long is found out before any statement has written
            read_all(engine, [entry.change for entry in entries])
        else:
            for entry in entries:
                entry.attempt(partial(entry.read, engine))
        with never_raising():
            for entry in entries:
                entry.attempt(partial(entry.run, engine, meters, request.return_consumed_capacity))
    answer: dict[str, Any] = {"Responses": [entry.answer for entry in entries]}
    add_capacity(answer, request.return_consumed_capacity, meters.values())
    return answer


def _refuse_duplicates(entries: Sequence[_BatchedStatement]) -> None:
    found = [(entry.table.name, entry.key) for entry in entries if entry.table and entry.key]
    if len(set(found)) < len(found):
        raise ValidationException(DUPLICATES)


# ExecuteTransaction


@action("ExecuteTransaction")
def execute_transaction(engine: Engine, request: ExecuteTransaction) -> Answer:
    """Run up to 100 statements, all of them or none."""
    entries = statements_of(request)
    reads = [isinstance(statement, Select) for statement, _ in entries]
    if any(reads) and not all(reads):
        raise ValidationException(messages.READ_AND_WRITE_TRANSACTION)
    if all(reads):
        return _read_together(engine, request, entries)
    token_use = transactions.use_of(request.client_request_token, request.transact_statements)
    with engine.writing:
        _check_entries(engine, entries)
        meters, _ = transactions.write_together(
            engine,
            [statement.table for statement, _ in entries],
            [
                partial(change_of, statement=statement, values=values, on_failure=on_failure)
                for (statement, values), on_failure in zip(
                    entries, _on_failure(request), strict=True
                )
                if not isinstance(statement, Select)
            ],
            mode=request.return_consumed_capacity,
            token_use=token_use,
        )
    answer: dict[str, Any] = {"Responses": []}
    add_capacity(answer, request.return_consumed_capacity, meters.values())
    return answer


def statements_of(request: ExecuteTransaction) -> list[tuple[AnyStatement, Values]]:
    """The statements of a transaction with their parameter values. An error names its statement."""
    parameters = [parameters_of(statement) for statement in request.transact_statements]
    return [
        _transactional(position, *each)
        for position, each in enumerate(zip(request.transact_statements, parameters, strict=True))
    ]


def _on_failure(request: ExecuteTransaction) -> list[str | None]:
    return [
        statement.return_values_on_condition_check_failure
        for statement in request.transact_statements
    ]


def _transactional(
    position: int, request: ParameterizedStatement, parameters: list[AttributeValue]
) -> tuple[AnyStatement, Values]:
    """A statement of a transaction. An error names its statement."""
    try:
        statement = parsed(request)
        values = statement.bind(parameters)
        if (
            isinstance(statement, UpdateStatement | DeleteStatement)
            and statement.returning is not None
        ):
            raise ValidationException(messages.TRANSACTION_RETURNING)
        if isinstance(statement, Select) and statement.index is not None:
            raise ValidationException(messages.TRANSACTION_INDEX)
    except ValidationException as error:
        raise _in_transaction(position, error.message) from None
    return statement, values


def _in_transaction(position: int, message: str) -> ValidationException:
    return ValidationException(messages.IN_TRANSACTION.format(position=position, message=message))


def _check_entries(engine: Engine, entries: Sequence[tuple[AnyStatement, Values]]) -> None:
    """Refuse an EXISTS without a condition beyond one item's key, and keys with types that no key can have."""
    for position, (statement, values) in enumerate(entries):
        assert not isinstance(statement, Select)
        table = named_table(engine, statement.table)
        if isinstance(statement, Exists) and not is_check(table, statement, values):
            raise _in_transaction(position, messages.TRANSACTION_EXISTS)
        if (wrong := key_fault(table, statement, values)) is not None:
            raise _in_transaction(position, wrong)


def _item_identity(key: Item, table: StoredTable) -> tuple[str, bytes]:
    return table.tree, located(table, key)


def _read_together(
    engine: Engine,
    request: ExecuteTransaction,
    entries: Sequence[tuple[AnyStatement, Values]],
) -> Answer:
    """Read one item for each SELECT, all at the same moment."""
    with engine.reading_beside as engine:
        readings = []
        for position, (statement, values) in enumerate(entries):
            assert isinstance(statement, Select)
            table = named_table(engine, statement.table)
            try:
                key = single_key(table, statement, values)
            except ValidationException as error:
                raise _in_transaction(position, error.message) from None
            if key is None:
                raise _in_transaction(position, messages.TRANSACTION_KEY)
            locate = partial(_item_identity, key)
            readings.append(
                transactions.TransactedRead(statement.table, locate, statement.projection)
            )
        return transactions.read_together(engine, readings, request.return_consumed_capacity)
