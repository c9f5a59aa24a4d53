"""Transactions, moves and batches: several writes at once, and which of them was refused."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.model.conftest import START

import isotone
from isotone import (
    Attr,
    Entity,
    EntityKey,
    Global,
    Index,
    Key,
    Table,
    computed,
    expires,
    field,
    version,
)
from isotone.backends.interface import Tape
from isotone.errors import (
    AlreadyExists,
    BatchIncomplete,
    ConditionFailed,
    NotFound,
    NotUnique,
    ProvisionedThroughputExceededException,
    TransactionCanceledException,
    TransactionFailed,
    UsageError,
)

bank = Table("bank", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
log = Table("log", sort=None)

ATTEMPTS = 10  # of a batch, in a row, that write nothing


class Account(Entity, table=bank):
    owner: Attr[str] = field()
    number: Attr[int] = field(max=9999, alert=1)
    balance: Attr[int] = field(default=0)
    state: Attr[str] = field(default="open")
    iban: Attr[str | None] = field(default=None, unique=True)
    label: Attr[str] = computed(lambda account: f"{account.owner}/{account.number}")

    primary = Key("OWNER", owner).sort("ACCOUNT", number)
    by_state = Index("GSI1", "STATE", state).sort(owner, number)


class Config(Entity, table=bank):
    name: Attr[str] = field()
    value: Attr[int] = field(default=0)
    revision: Attr[int] = version()

    primary = Key("CONFIG", name).sort("CONFIG")


class Entry(Entity, table=log):
    code: Attr[str] = field()
    text: Attr[str] = field(default="")

    primary = Key("ENTRY", code)


def key(number: int) -> dict[str, Any]:
    return {"owner": "o", "number": number}


@pytest.fixture
def banking(desk: Any) -> Any:
    desk.store.create_tables(bank, log)
    for number, balance in ((1, 10), (2, 0)):
        desk.store.put(Account(**key(number), balance=balance))
    return desk


def balances(desk: Any) -> list[Any]:
    found = desk.store.get_together(*([(Account, key(number)) for number in (1, 2)]))
    return [account and account.balance for account in found]


def test_all_is_written_over_tables_and_kinds(banking: Any) -> None:
    t = banking.store.transaction()
    t.update(Account, Account.balance.add(-4), **key(1), when=Account.balance >= 4)
    t.update(Account, Account.balance.add(4), Account.state.set("rich"), **key(2))
    t.create(Entry(code="e1", text="4 from 1 to 2"))
    t.put(Config(name="c"))
    t.commit()
    assert balances(banking) == [6, 4]
    assert banking.item(Account(**key(2)))["GSI1PK"] == {"S": "STATE#rich"}
    assert banking.item(Entry(code="e1"))["text"] == {"S": "4 from 1 to 2"}


def test_one_that_is_refused_keeps_all_from_being_written(banking: Any) -> None:
    t = banking.store.transaction()
    t.update(Account, Account.balance.add(-40), **key(1), when=Account.balance >= 40)
    t.update(Account, Account.balance.add(40), **key(2))
    with pytest.raises(TransactionFailed, match="nothing was written") as failure:
        t.commit()
    (error,) = failure.value.reasons.values()
    assert list(failure.value.reasons) == [0]
    assert type(error) is ConditionFailed
    assert error.current.balance == 10
    assert balances(banking) == [10, 0]


def test_an_upsert_makes_what_is_not_there_or_nothing(banking: Any) -> None:
    for number in (2, 3):
        t = banking.store.transaction()
        t.upsert(Account, Account.balance.add(5), **key(number))
        t.create(Entry(code=f"e{number}"))
        t.commit()
    (account,) = banking.store.get_together((Account, key(3)))
    assert (account.balance, account.label, balances(banking)) == (5, "o/3", [10, 5])
    assert banking.item(account)["GSI1PK"] == {"S": "STATE#open"}
    t = banking.store.transaction()
    t.upsert(Account, Account.balance.add(5), **key(4))
    t.create(Entry(code="e3"))
    with pytest.raises(TransactionFailed):
        t.commit()
    assert banking.store.get_together((Account, key(4))) == [None]


def test_each_refused_write_has_its_own_error(banking: Any) -> None:
    banking.store.create(Account(**key(3), iban="DE1"))
    t = banking.store.transaction()
    t.create(Account(**key(1)))
    t.replace(Account(**key(9)))
    t.create(Account(**key(4), iban="DE1"))
    t.check(Account, Account.state == "closed", **key(2))
    with pytest.raises(TransactionFailed) as failure:
        t.commit()
    kinds = {place: type(error) for place, error in failure.value.reasons.items()}
    assert kinds == {0: AlreadyExists, 1: NotFound, 2: NotUnique, 3: ConditionFailed}
    assert type(failure.value.reason_of(Account.primary.at(**key(9)))) is NotFound
    assert failure.value.reason_of(Account) is failure.value.reasons[0]
    assert failure.value.reason_of(Account.primary.at(**key(7))) is None
    assert failure.value.reason_of(Entry) is None


def test_a_failed_transaction_names_its_entities(banking: Any) -> None:
    t = banking.store.transaction()
    t.get(Account, **key(2))
    banking.store.update(Account, Account.balance.add(1), **key(2))
    t.put(Entry(code="fine"))
    t.create(Account(**key(1)))
    t.delete(Account, when=Account.balance > 7, **key(8))
    t.check(EntityKey(Entry, code="none"), Entry.text == "x")
    with pytest.raises(TransactionFailed) as raised:
        t.commit()
    failures = raised.value.failures
    assert [(each.position, each.key, type(each.reason)) for each in failures] == [
        (1, EntityKey(Account, **key(1)), AlreadyExists),
        (2, EntityKey(Account, **key(8)), ConditionFailed),
        (3, EntityKey(Entry, code="none"), ConditionFailed),
        (4, EntityKey(Account, **key(2)), ConditionFailed),  # was read, and has changed
    ]
    assert failures[0].key.entity is Account
    assert failures[0].key.fields == key(1)
    assert banking.store.get(failures[0].key).balance == 10
    text = str(raised.value)
    assert all(str(each.reason) in text for each in failures)


def test_a_failure_found_before_sending_names_its_entity(banking: Any) -> None:
    t = banking.store.transaction()
    t.put(Entry(code="e"))
    t.move(Account, Account.number.set(8), **key(6))
    with pytest.raises(
        TransactionFailed, match=r"nothing was written: Account .* does not exist"
    ) as raised:
        t.commit()
    (failure,) = raised.value.failures
    assert (failure.position, failure.key, type(failure.reason)) == (
        1,
        EntityKey(Account, **key(6)),
        NotFound,
    )


def test_a_caller_says_what_is_wrong_where_its_condition_does_not_hold(banking: Any) -> None:
    banking.store.create(Account(**key(3), balance=7))
    t = banking.store.transaction()
    t.create(Entry(code="e"))
    t.put(
        Account(**key(3)),
        when=Account.balance == 0,
        otherwise=lambda there: NotUnique("taken", "balance", 0, there.balance if there else None),
    )
    with pytest.raises(
        TransactionFailed, match=r"nothing was written: Account.*: taken$"
    ) as failure:
        t.commit()
    assert failure.value.reasons[1].owner == 7


def test_a_missing_item_is_found_out_before_anything_is_sent(banking: Any) -> None:
    t = banking.store.transaction()
    t.put(Entry(code="e"))
    t.update(Account, Account.state.set("x"), **key(7))
    t.move(Account, Account.number.set(8), **key(6))
    with pytest.raises(TransactionFailed, match="ACCOUNT#0006 does not exist") as failure:
        t.commit()
    assert failure.value.reasons.keys() == {2}


def test_what_was_read_must_be_unchanged(banking: Any) -> None:
    t = banking.store.transaction()
    account = t.get(Account, **key(1))
    assert t.get(Account, **key(5)) is None
    t.put(Entry(code="e", text=str(account.balance)))
    banking.store.update(Account, Account.balance.add(1), **key(1))
    with pytest.raises(TransactionFailed) as failure:
        t.commit()
    assert failure.value.reasons[1].current.balance == 11  # type: ignore[attr-defined]
    again = banking.store.transaction()
    account = again.get(Account, **key(1))
    again.update(Account, Account.balance.set(account.balance * 2), **key(1))
    again.commit()
    assert balances(banking) == [22, 0]


def test_a_write_of_what_was_read_is_refused_when_it_has_changed(banking: Any) -> None:
    t = banking.store.transaction()
    account = t.get(Account, **key(1))
    t.update(Account, Account.balance.set(account.balance * 2), Account.state.set("x"), **key(1))
    banking.store.update(Account, Account.balance.add(1), **key(1))
    with pytest.raises(TransactionFailed):
        t.commit()
    assert balances(banking) == [11, 0]


def test_a_transaction_is_over_after_its_end_and_has_an_item_once(banking: Any) -> None:
    t = banking.store.transaction()
    t.commit()
    with pytest.raises(UsageError, match="the transaction is over"):
        t.put(Entry(code="e"))
    twice = banking.store.transaction()
    twice.update(Account, Account.balance.add(1), **key(1))
    twice.delete(Account, **key(1))
    with pytest.raises(
        UsageError, match="entries 0 and 1 of the transaction write the same Account"
    ):
        twice.commit()


def test_too_many_actions_are_refused_before_they_are_sent(banking: Any) -> None:
    t = banking.store.transaction()
    for number in range(101):
        t.put(Entry(code=str(number)))
    with pytest.raises(UsageError, match="at most 100 items, not 101"):
        t.commit()


def test_a_conflict_with_another_transaction_is_tried_again() -> None:
    reasons = [{"Code": "TransactionConflict"}, {"Code": "None"}]
    tape = Tape([TransactionCanceledException("…", CancellationReasons=reasons), {}])
    with isotone.connect(tape, check_keys=False).transaction() as t:
        t.put(Entry(code="a"))
        t.put(Entry(code="b"))
    (_, first), (_, second) = tape.asked
    assert first["TransactItems"] == second["TransactItems"]
    # The backend adds a token to each, so the second attempt is not taken for the first one.
    assert "ClientRequestToken" not in {**first, **second}


def test_a_refusal_that_nothing_helps_is_raised_as_it_is() -> None:
    reasons = [{"Code": "ValidationError", "Message": "…"}, {"Code": "None"}]
    tape = Tape([TransactionCanceledException("…", CancellationReasons=reasons)])
    t = isotone.connect(tape, check_keys=False).transaction()
    t.put(Entry(code="a"))
    t.put(Entry(code="b"))
    with pytest.raises(TransactionCanceledException):
        t.commit()


# Moving


def test_a_move_takes_all_with_it(banking: Any) -> None:
    banking.store.update(Account, Account.iban.set("DE1"), **key(1))
    changes = [Account.number.set(7), Account.balance.add(1)]
    after = banking.store.move(Account, *changes, **key(1))
    assert (after.number, after.balance, after.label) == (7, 11, "o/7")
    assert balances(banking) == [None, 0]
    assert banking.item(after) == Account.__schema__.to_item(after.__dict__)
    with pytest.raises(NotUnique, match="by OWNER#o, ACCOUNT#0007"):
        banking.store.create(Account(**key(8), iban="DE1"))
    banking.store.update(Account, Account.iban.remove(), **key(7))
    banking.store.create(Account(**key(8), iban="DE1"))


def test_a_move_needs_an_item_and_a_free_place(banking: Any) -> None:
    with pytest.raises(NotFound):
        banking.store.move(Account, Account.number.set(7), **key(9))
    with pytest.raises(AlreadyExists, match="ACCOUNT#0002 already exists"):
        banking.store.move(Account, Account.number.set(2), **key(1))
    with pytest.raises(ConditionFailed):
        banking.store.move(Account, Account.number.set(7), when=Account.state == "closed", **key(1))
    assert balances(banking) == [10, 0]


def test_a_move_that_is_overtaken_takes_the_newer_item(banking: Any) -> None:
    banking.before["TransactWriteItems"] = lambda: banking.store.update(
        Account, Account.balance.add(5), **key(1)
    )
    after = banking.store.move(Account, Account.number.set(7), **key(1))
    assert after.balance == 15


def test_a_move_takes_what_is_added_in_between(banking: Any) -> None:
    banking.before["TransactWriteItems"] = lambda: banking.store.update(
        Account, Account.iban.set("DE1"), **key(1)
    )
    after = banking.store.move(Account, Account.number.set(7), **key(1))
    assert after.iban == "DE1"
    assert banking.store.verify(bank).is_clean


def test_a_transaction_fails_where_an_attribute_is_added_to_what_it_has_read(banking: Any) -> None:
    tx = banking.store.transaction()
    account = tx.get(Account, **key(1))
    assert account is not None
    assert account.iban is None
    banking.store.update(Account, Account.iban.set("DE1"), **key(1))
    tx.update(Account, Account.balance.add(1), **key(2))
    with pytest.raises(TransactionFailed):
        tx.commit()
    assert balances(banking) == [10, 0]


def test_a_move_to_the_same_place_is_an_update(banking: Any) -> None:
    banking.store.move(Account, Account.number.set(1), Account.state.set("x"), **key(1))
    assert banking.item(Account(**key(1)))["GSI1PK"] == {"S": "STATE#x"}


def test_attributes_of_others_move_too(banking: Any) -> None:
    banking.backend.execute(
        "UpdateItem",
        {
            "TableName": "bank",
            "Key": Account.__schema__.primary_key(key(1)),
            "UpdateExpression": "SET foreign_one = :v",
            "ExpressionAttributeValues": {":v": {"S": "kept"}},
        },
    )
    after = banking.store.move(Account, Account.number.set(7), **key(1))
    assert banking.item(after)["foreign_one"] == {"S": "kept"}


# Batches


def test_a_batch_is_written_in_requests_of_25(banking: Any) -> None:
    seen: list[Any] = []
    entries = [Entry(code=str(number)) for number in range(60)]
    asked = banking.operations(lambda: banking.store.put_many(entries, progress=seen.append))
    assert asked == ["BatchWriteItem"] * 3
    assert seen == [(25, 60), (50, 60), (60, 60)]
    assert banking.store.delete_many(Entry, ({"code": str(n)} for n in range(30))) == 30
    assert banking.store.delete_many(entries[30:59]) == 29
    assert banking.item(entries[58]) is None
    assert banking.item(entries[59]) is not None


def test_an_entity_that_comes_twice_is_written_as_it_comes_last(banking: Any) -> None:
    banking.store.put_many([Entry(code="a", text="1"), Entry(code="a", text="2")])
    assert banking.item(Entry(code="a"))["text"] == {"S": "2"}


def test_what_a_batch_cannot_check_is_refused(banking: Any) -> None:
    with pytest.raises(UsageError, match="Config has a version"):
        banking.store.put_many([Config(name="a")])
    with pytest.raises(UsageError, match="Account has unique values"):
        banking.store.delete_many(Account, [key(1)])


def test_what_is_left_of_a_batch_is_sent_again(pauses: list[float]) -> None:
    requests = [
        {"PutRequest": {"Item": Entry.__schema__.to_item(Entry(code=code).__dict__)}}
        for code in "abc"
    ]
    tape = Tape(
        [
            {"UnprocessedItems": {"log": requests[1:]}},
            ProvisionedThroughputExceededException(""),
            {"UnprocessedItems": {}},
        ]
    )
    assert (
        isotone.connect(tape, check_keys=False).put_many([Entry(code=code) for code in "abc"]) == 3
    )
    sent = [request["RequestItems"]["log"] for _, request in tape.asked]
    assert sent == [requests, requests[1:], requests[1:]]


def test_what_is_left_comes_in_any_order_and_after_a_pause(pauses: list[float]) -> None:
    entries = [Entry(code=str(number)) for number in range(3)]
    requests = [{"PutRequest": {"Item": Entry.__schema__.to_item(vars(each))}} for each in entries]
    tape = Tape([{"UnprocessedItems": {"log": each}} for each in (requests[::-1], requests) * 9])
    with pytest.raises(BatchIncomplete):
        isotone.connect(tape, check_keys=False).put_many(entries)
    assert (len(tape.asked), len(pauses)) == (ATTEMPTS, ATTEMPTS - 1)
    pauses.clear()
    tape = Tape([{"UnprocessedItems": {"log": requests[:1]}}, {}])
    isotone.connect(tape, check_keys=False).put_many(entries)
    assert len(pauses) == 1


class ServesNothing:
    """A backend that leaves every entry of a batch undone."""

    def execute(self, operation: str, request: Any) -> dict[str, Any]:
        return {"UnprocessedItems": request["RequestItems"]}


def test_a_batch_that_gets_nowhere_says_what_is_left(pauses: list[float]) -> None:
    with pytest.raises(BatchIncomplete, match="1 of 1 entries") as failure:
        isotone.connect(ServesNothing(), check_keys=False).put_many([Entry(code="a")])
    assert len(pauses) == ATTEMPTS - 1
    assert failure.value.remaining[0]["PutRequest"]["Item"]["code"] == {"S": "a"}


class Pass(Entity, table=bank):
    code: Attr[str] = field()
    is_used: Attr[bool] = field(default=False)
    until: Attr[datetime | None] = expires()

    primary = Key("PASS", code).sort("PASS")


def test_nothing_is_insisted_on_that_has_expired(banking: Any) -> None:
    soon = START + timedelta(hours=1)
    banking.store.put(Pass(code="a", until=soon))
    for moment, allowed in ((START, True), (soon, False)):
        banking.clock.set(moment)
        t = banking.store.transaction()
        t.put(Entry(code=str(moment)))
        t.check(Pass, Pass.is_used == False, code="a")  # noqa: E712
        with contextlib.nullcontext() if allowed else pytest.raises(TransactionFailed):
            t.commit()


def test_what_a_transaction_writes_twice_is_said(banking: Any) -> None:
    banking.store.create(Account(**key(3), iban="DE1"))
    both = banking.store.transaction()
    both.create(Account(**key(4), iban="DE4"))
    both.create(Account(**key(5), iban="DE4"))
    with pytest.raises(UsageError, match=r"entries 0 and 1 .* the same value of a unique field"):
        both.commit()
    handed = banking.store.transaction()
    handed.delete(Account, **key(3))
    handed.create(Account(**key(4), iban="DE1"))
    with pytest.raises(UsageError, match="one after the other"):
        handed.commit()
    moved = banking.store.transaction()
    moved.move(Account, Account.number.set(8), **key(1))
    moved.create(Account(**key(8)))
    with pytest.raises(UsageError, match=r"entries 0 and 1 .* the same Account"):
        moved.commit()
    assert balances(banking) == [10, 0]


def test_a_place_that_was_seen_to_be_free_can_be_moved_to(banking: Any) -> None:
    t = banking.store.transaction()
    assert t.get(Account, **key(8)) is None
    t.move(Account, Account.number.set(8), **key(1))
    t.commit()
    assert banking.item(Account(**key(8))) is not None


def test_reads_together_may_repeat_and_be_none(banking: Any) -> None:
    found = banking.store.get_together((Account, key(1)), (Account, key(1)))
    assert [account.balance for account in found] == [10, 10]
    assert banking.store.get_together() == []


def test_a_read_in_the_middle_of_a_transaction_is_tried_again(banking: Any) -> None:
    def conflict() -> None:
        reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
        raise TransactionCanceledException("…", CancellationReasons=reasons)

    banking.before["TransactGetItems"] = conflict
    assert balances(banking) == [10, 0]


def test_what_no_transaction_can_do_is_said(banking: Any) -> None:
    together = banking.store.transaction()
    together.put(Config(name="a"))
    together.update(Account, Account.balance.add(1), owner="o", number=1)
    banking.backend.execute(
        "UpdateItem",
        {
            "TableName": "bank",
            "Key": Account.__schema__.primary_key(key(1)),
            "UpdateExpression": "SET balance = :text",
            "ExpressionAttributeValues": {":text": {"S": "ten"}},
        },
    )
    with pytest.raises(TransactionCanceledException) as refused:
        together.commit()
    assert str(refused.value) == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ValidationError]; ValidationError of entry 1: An operand in the update expression "
        "has an incorrect data type"
    )
    assert [each["Code"] for each in refused.value.members["CancellationReasons"]] == [
        "None",
        "ValidationError",
    ]
