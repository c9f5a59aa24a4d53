"""Numbers in string keys, padded with zeros, with room to grow.

Number issues so that 2 sorts before 10. `max=` declares the greatest possible number, and the key is padded to
its width: `ISSUE#00000157`. When a number reaches 30 % of the maximum, the library reports it once: as a
warning, to a callback and in a list for metrics. A number beyond the width is refused, and nothing is written.
Widening keys takes three steps: declare the previous maximum beside the new one, so that both are read; rewrite
the keys; remove the previous maximum.

    python examples/09_zero_padding.py [ADDRESS]
"""

from __future__ import annotations

import sys
import warnings

import isotone
from isotone import Attr, Entity, Key, Rewritten, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import OutOfRange

tracker = Table("issue-tracker")


class Issue(Entity, table=tracker):
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999_999)

    primary = Key("REPO", repository).sort("ISSUE", number)


class WideningIssue(Entity, table=tracker, tag="Issue"):
    """Step 1: the new maximum, and the previous one."""

    repository: Attr[str] = field()
    number: Attr[int] = field(max=9_999_999_999, was=99_999_999)

    primary = Key("REPO", repository).sort("ISSUE", number)


class WideIssue(Entity, table=tracker, tag="Issue"):
    """Step 3: the previous maximum is removed."""

    repository: Attr[str] = field()
    number: Attr[int] = field(max=9_999_999_999)

    primary = Key("REPO", repository).sort("ISSUE", number)


class Interrupted(Exception):
    """The user pressed Ctrl-C."""


def interrupt(progress: Rewritten) -> None:
    assert 0 < progress.seen < 507
    print("the first issues are seen")
    raise Interrupted


# What many users would do: isotone simulate 09_zero_padding
load = Workload("issue tracker", tables=[tracker])
repositories = load.population("repository", 1_000_000, activity=0.8)


@load.action(by=repositories, per_day=5)
def report(call: WorkloadCall) -> None:
    number = call.chance.randrange(10**7)
    call.store.put(Issue(repository=call.member.id, number=number))


@load.action(by=repositories, per_day=50)
def list_newest(call: WorkloadCall) -> None:
    query = Issue.primary.where(Issue.repository == call.member.id)
    call.store.page(query.reversed(), size=25)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.drop_tables(tracker)  # of a previous run, whose keys were widened
        store.create_tables(tracker)
        for number in (10, 157, 2):
            store.put(Issue(repository="hello", number=number))
        print("2 before 10")
        issues = Issue.primary.where(Issue.repository == "hello")
        isotone.show(store.all(issues))

        print("\n30 % are reached, and noticed once")
        stop = isotone.on_headroom(lambda notice: print(f"callback: {notice.share:.0%}"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for number in (29_999_999, 30_000_000, 30_000_001):
                store.put(Issue(repository="hello", number=number))
        stop()
        for warning in caught:
            print(f"{warning.category.__name__}: {warning.message}")
        for notice in isotone.headroom_notices():
            print(f"metric: {notice.entity}.{notice.key}.{notice.field} {notice.share:.2f}")

        print("\nBeyond the width")
        before = store.count(issues)
        try:
            store.put(Issue(repository="hello", number=100_000_000))
        except OutOfRange as error:
            print(error)
        print(f"issues before: {before}, after: {store.count(issues)}")

        print("\nWidening: both widths are read")
        store.put_many(Issue(repository="big", number=number) for number in range(1, 501))
        store.put(WideningIssue(repository="hello", number=100_000_000))
        both = WideningIssue.primary.where(WideningIssue.repository == "hello")
        isotone.show(store.all(both), WideningIssue.number)

        print("\nWidening: interrupted, and gone on with")
        try:
            store.widen(WideningIssue, progress=interrupt)
        except Interrupted:
            print("interrupted")
        done = store.widen(WideningIssue)
        print(f"{done.seen} issues are seen, {done.rewritten} rewritten")

        print("\nWidened")
        wide = WideIssue.primary.where(WideIssue.repository == "hello")
        isotone.show(store.all(wide))
        big = WideIssue.primary.where(WideIssue.repository == "big")
        print(f"and {store.count(big)} more")

        everything = [*store.all(wide), *store.all(big)]
        store.delete_many(everything)


if __name__ == "__main__":
    main(*sys.argv[1:])
