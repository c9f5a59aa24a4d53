"""How events come into a board.

A sum or an average follows from what is there: the entry is read, the event joined to it, and the entry
written if it is still the same. Each event leaves its mark on the entry: who was refused, and finds the own
mark, has written it already, and only the answer was lost. The best or the last of all values needs no
reading: it is written over what is worse, or older, by one conditional update. Where an event is to count
once whatever happens, its token is written in the same transaction; where ranks are kept, so is the change
of the ranking, and then the entry is read in any case.
"""

from __future__ import annotations

import uuid
from fractions import Fraction
from typing import Any, Final

from isotone.errors import AlreadyExists, ConditionFailed, Contended, NotFound, TransactionFailed
from isotone.model import Condition, Steps, Transaction
from isotone.structures.leaderboard.board import Board
from isotone.structures.leaderboard.entry import Entry, LeaderboardToken, Tally, joined
from isotone.structures.ranking import Overtaken
from isotone.structures.retries import retry_on_conflict
from isotone.structures.windows import ALL_TIME, Window

_MARK: Final = 8  # hexadecimal digits; it has to differ from that of one other writer alone
_ADVICE: Final = "collect events and write them with record_many(), or try again later"


class TooLate(Exception):
    """The window of an event is over, or its member has been seen in a newer one."""


def add(
    board: Board, member: str, window: Window, tally: Tally, token: LeaderboardToken | None
) -> Steps[Entry | None]:
    """Bring a tally into a member's entry, and give what is there then; raises `TooLate`.

    Nothing is counted where the token is there; None where the entry of that event has gone since.
    """
    if board.is_over(window, tally.at):
        raise TooLate
    mark = uuid.uuid4().hex[:_MARK]
    is_blind = board.score in ("best", "last") and token is None and not board.is_ranked

    def attempt() -> Steps[Entry | None]:
        if is_blind:
            return _overwrite(board, member, window, tally)
        return _join(board, member, window, tally, token, mark)

    return (yield from retry_on_conflict(attempt, f"{member!r} of the board", _ADVICE))


def remove(board: Board, member: str, window: Window) -> Steps[bool]:
    """Take a member's entry away; whether there was one."""

    def attempt() -> Steps[bool]:
        found = yield from board.find(member, window)
        if found is not None:
            together = board.calls.transaction()
            together.delete(found)
            yield from _commit(board, together, found, None)
        return found is not None

    return (yield from retry_on_conflict(attempt, f"{member!r} of the board", _ADVICE))


# By one write


def _overwrite(board: Board, member: str, window: Window, tally: Tally) -> Steps[Entry]:
    """Write a single value over a worse or older one, or over that of a former window."""
    order = f"{window.label}#{board.digits.text(tally.total)}"
    changes = [Entry.order.set(order), Entry.total.set(tally.total), Entry.at.set(tally.at)]
    if not board.keeps_history and window is not ALL_TIME:
        changes += [Entry.window.set(window.label), Entry.began.set(window.start)]
    if board.expire_after is not None:
        changes.append(Entry.until.set(board.gone_at(window, tally.at)))
    key, when = board.key(member, window), _is_passed(board, window, tally)
    try:
        written: Entry = yield from board.calls.update(board.entries, *changes, when=when, **key)
    except NotFound:
        return (yield from board.calls.create(_entry(board, member, window, tally)))
    except ConditionFailed as refused:
        found = board.own(refused.current)
        if found.window != window.label:
            raise TooLate from None
        return found
    return written


def _is_passed(board: Board, window: Window, by: Tally) -> Condition:
    """That what is there gives way to a tally in a window."""
    if board.score == "last":
        gives_way = Entry.at <= by.at
    else:
        gives_way = Entry.total < by.total if board.best == "highest" else Entry.total > by.total
    if not board.keeps_history and window is not ALL_TIME:
        gives_way = ((Entry.window == window.label) & gives_way) | (Entry.began < window.start)
    return (Entry.kind == board.kind) & gives_way


# By a reading and a write


def _join(
    board: Board,
    member: str,
    window: Window,
    tally: Tally,
    token: LeaderboardToken | None,
    mark: str,
) -> Steps[Entry | None]:
    found = yield from board.find(member, window)
    if found is not None and found.mark == mark:
        return found
    entry = _after(board, found, member, window, tally)
    if entry is found and token is None:
        return entry
    together = board.calls.transaction()
    if token is not None:
        together.create(token)
    if entry is not found:
        entry.mark = mark
        together.put(entry)
    try:
        yield from _commit(board, together, found, entry)
    except TransactionFailed as failed:
        if token is None or not isinstance(failed.failures.get(0), AlreadyExists):
            raise
        # It was counted before, and in another window where that has passed.
        found = yield from board.find(member, window)
        return found if found is not None and found.window == window.label else None
    return entry


def _after(board: Board, found: Entry | None, member: str, window: Window, tally: Tally) -> Entry:
    """The entry with the tally in it; the same one where that changes nothing."""
    revision = 0 if found is None else found.revision
    if found is not None and found.window == window.label:
        known = Tally(found.total, found.count, found.at)
        tally = joined(known, tally, board.score, board.best)
        if tally is known:
            return found
    elif found is not None and found.began is not None and found.began > window.start:
        raise TooLate
    entry = _entry(board, member, window, tally)
    entry.__dict__["revision"] = revision  # the put insists on what was read
    return entry


def _entry(board: Board, member: str, window: Window, tally: Tally) -> Entry:
    score = Fraction(tally.total)
    if board.score == "average":
        score /= tally.count
    entry: Entry = board.entries(
        **board.key(member, window),
        kind=board.kind,
        member=member,
        window=window.label,
        began=None if window is ALL_TIME else window.start,
        order=f"{window.label}#{board.digits.text(score)}",
        total=tally.total,
        count=tally.count,
        at=tally.at,
        until=board.gone_at(window, tally.at),
    )
    return entry


def _commit(
    board: Board, together: Transaction, before: Entry | None, after: Entry | None
) -> Steps[None]:
    """Write what was collected, and the changes of rankings that follow from an entry's change."""
    try:
        if board.is_ranked and before is not after:
            yield from _rank(board, together, before, after)
        yield from together.commit()
    except (TransactionFailed, Contended):
        for entry in (before, after):
            if entry is not None and board.is_ranked:
                board.ranking(entry.window, afresh=True)
        raise


def _rank(
    board: Board, together: Transaction, before: Entry | None, after: Entry | None
) -> Steps[None]:
    """Add the change of the ranking, or of two where a member enters its next window."""
    moves: dict[str, dict[str, Any]] = {}
    for way, entry in (("leaving", before), ("entering", after)):
        if entry is not None:
            moves.setdefault(entry.window, {})[way] = board.ranking_key(entry)
    for window, keys in moves.items():
        # That of a window which is left may have been dropped, and what is in mind of it worth nothing.
        ranking = board.ranking(window, afresh="entering" not in keys)
        try:
            yield from ranking.change(together, **keys)
        except Overtaken as overtaken:
            # What was dropped has nothing that could leave it, and is not begun again.
            if "leaving" not in keys or (yield from ranking.size()):
                raise Contended(f"others changed {overtaken}") from None
