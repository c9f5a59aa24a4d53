"""The rules of lint (ISO101 …): what each code means, why it hurts, an example of the fault, and how to fix it.

`make files` writes docs/lint.md from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from isotone.errors import UsageError

Level = Literal["warning", "note"]
Where = Literal["models", "data", "models and data", "comments"]


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule. `bad` shows the fault, as declarations or as stored keys; `good` is the same without the fault."""

    code: str
    title: str
    where: Where
    why: str
    bad: str
    fix: str
    good: str
    level: Level = "warning"

    def text(self) -> str:
        """The rule for a terminal."""
        return (
            f"{self.code}: {self.title} (found in {self.where})\n\n{self.why}\n\n"
            f"{_indented(self.bad)}\n\n{self.fix}\n\n{_indented(self.good)}"
        )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


_ALL: Final = (
    LintRule(
        "ISO001",
        "a suppression without a reason",
        "comments",
        "Whoever reads the comment later cannot tell whether the reason still holds.",
        "order = Key(...)  # isotone: ignore[ISO105]",
        "Write the reason after the code.",
        "order = Key(...)  # isotone: ignore[ISO105] always read whole",
    ),
    LintRule(
        "ISO002",
        "a suppression that suppresses nothing",
        "comments",
        "The code does not exist, or the fault has gone. The comment would hide the fault if it came back.",
        "order = Key(...)  # isotone: ignore[ISO999] a typing error",
        "Remove it, or correct the code.",
        "order = Key(...)",
    ),
    LintRule(
        "ISO101",
        "a number without a width in a string key",
        "models and data",
        "Strings sort character by character: 10 comes before 2. A range of such keys returns wrong items, and the "
        "newest item is not the last one.",
        "ORDER#10\nORDER#2\nORDER#9",
        "Declare the greatest value: field(max=99_999) pads with zeros. raw(number) is only for keys that "
        "another program has written and that are never read by range.",
        "ORDER#00002\nORDER#00009\nORDER#00010",
    ),
    LintRule(
        "ISO102",
        "little room left in the width of a number",
        "data",
        "A number that no longer fits its width is refused, or, if another program writes it, sorts before all others. "
        "To widen keys means to rewrite every item; do it while there is time.",
        "INVOICE#8731  of at most 9999",
        "Declare a larger maximum with the present one, field(max=9_999_999, was=9_999), and run store.rewrite.",
        "INVOICE#0008731  of at most 9999999",
        "note",
    ),
    LintRule(
        "ISO103",
        "mixed case in a key",
        "models and data",
        "Strings sort by their bytes, so all capitals come before all small letters, and Ann@example.com is not found "
        "as ann@example.com. The same person may be stored twice.",
        "USER#Zoe\nUSER#ann\nUSER#bob",
        'Store one case in keys: field(case="lower"). The entity keeps the spelling that was given.',
        "USER#ann\nUSER#bob\nUSER#zoe",
    ),
    LintRule(
        "ISO104",
        "a date as it is displayed in a key",
        "models and data",
        "A date sorts by time only if the year comes first and each part has a fixed width. 01/02/2026 sorts by day, "
        "and a text that is named like a date may contain anything.",
        "ORDER#01/02/2026\nORDER#31/01/2026",
        "Declare the field as a date or a datetime: keys then have the ISO form in UTC.",
        "ORDER#2026-01-31\nORDER#2026-02-01",
    ),
    LintRule(
        "ISO105",
        "a component with many values before one with few",
        "models and data",
        "A query gives the first components by = and a range of the next one. After a time, an id or a number, each "
        "item has a place of its own, so the status after it can only be filtered: all items are read and paid for.",
        "2026-01-11T09:00:00Z#SHIPPED\n2026-01-11T09:05:00Z#CANCELLED",
        "Put the component with few values first: sort(status, ordered_at). If both orders are needed, declare an index "
        "for one of them.",
        "CANCELLED#2026-01-11T09:05:00Z\nSHIPPED#2026-01-11T09:00:00Z",
    ),
    LintRule(
        "ISO106",
        "consecutive numbers as partition keys",
        "data",
        "Each new key needs the last one, so all writers wait for one counter, which bears about a thousand writes per "
        "second. Anybody can guess the next key, and count your orders.",
        "ORDER#1001\nORDER#1002\nORDER#1003",
        "Use an id that needs no counter, KSUID.new() or uuid7(), and keep the number as an attribute if people need it.",
        "ORDER#2CPPw1lmEgzbU5sE9OTbqbjXyQ0",
    ),
    LintRule(
        "ISO201",
        "a partition that grows without bound",
        "data",
        "One partition serves at most 3,000 read and 1,000 write units per second, however large the table is. A "
        "collection that has most items of a table is where it will be throttled.",
        "ALL#ORDERS  with 90 % of all items",
        "Divide it: by an owner, by month, or by a shard number that writes choose at random and reads merge.",
        "ORDERS#2026-01\nORDERS#2026-02",
    ),
    LintRule(
        "ISO202",
        "the present time as a partition key",
        "models",
        "All writes of today go to today's partition: 1,000 write units per second at most, while the partitions of "
        "other days are idle.",
        'primary = Key("DAY", day).sort(at)',
        "Add what distinguishes writers to the partition: a sensor, a customer, or a shard number.",
        'primary = Key("DAY", day, sensor).sort(at)',
    ),
    LintRule(
        "ISO203",
        "a collection near 10 GB in a table with a local index",
        "data",
        "With a local index, the items of a partition key and their index entries may have 10 GB together. "
        "Then writes that add to it fail with ItemCollectionSizeLimitExceededException. A local index cannot be removed.",
        "TENANT#7  with 9.1 GB",
        "Move the order to a global index in a new table (isotone copy), or divide the partition.",
        'indexes={"by_date": Global("PK", "date")}',
    ),
    LintRule(
        "ISO204",
        "an item near 400 KB",
        "data",
        "A larger item is refused. Until then each read of it costs 50 to 100 units, each write up to 400, however small "
        "the change.",
        "DOCUMENT#7  with 390 KB",
        "Move what grows into items of its own, next to the first one, or large values into a bucket.",
        "DOCUMENT#7\nDOCUMENT#7#PAGE#001",
    ),
    LintRule(
        "ISO205",
        "a constant partition",
        "models and data",
        "All entries of such a key are one collection: 3,000 read and 1,000 write units per second. A sparse index of what "
        "is open gets two writes for each item, one when it opens and one when it closes. The simulation shows such "
        "partitions as hot.",
        'unpaid = Index("GSI1", "UNPAID", when=Invoice.status == "UNPAID").sort(due)',
        "Add what divides them: the tenant, the month, or a shard number that writes choose and reads merge. If the "
        "collection stays small and is seldom written, ignore the finding and say why.",
        'unpaid = Index("GSI1", "UNPAID", tenant, when=Invoice.status == "UNPAID").sort(due)',
    ),
    LintRule(
        "ISO301",
        "an index that nothing uses",
        "models and data",
        "Each index stores and writes its entries again: it doubles the cost of the writes that it contains.",
        'Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")})',
        "Remove the index, or declare a key of an entity on it.",
        'Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})',
    ),
    LintRule(
        "ISO302",
        "a sparse index that is not sparse",
        "models",
        "An index with when= contains only what is wanted, so that it can be read whole. If other entities write "
        "an entry for each of their items, reading the index pays for these, too. A query of one partition does not.",
        'admins = Index("roles", "ORG", org, when=User.role == "Admin").sort(name)\n'
        'by_day = Index("roles", "ORDERS", day).sort(number)   # of another entity',
        "Give the sparse entity an index of its own, with one_kind=True. If it is always read by its partition, ignore "
        "the finding and say so.",
        'Table("org", indexes={"roles": Global("PK1", "SK1", one_kind=True), "GSI2": Global("PK2", "SK2")})',
    ),
    LintRule(
        "ISO303",
        "a projection that forces more reads",
        "models",
        "A local index fetches each attribute that it does not project from the table: one more read for each item of a "
        "page.",
        'Local("due", projection="KEYS_ONLY")   # and the entity has a title',
        'Project the fields that queries return, or all: projection="ALL".',
        'Local("due", projection=("title",))',
    ),
    LintRule(
        "ISO401",
        "a filter that drops most of what is read",
        "data",
        "A filter runs after the read: what it drops is paid for and fills the pages. As a rule, less than 30 to 40 % of "
        "hits means that an index is cheaper.",
        'shipped = Order.primary.where(Order.shop == "s1").filter(Order.status == "SHIPPED")',
        "Declare an index whose key answers the condition, or a sparse one.",
        'by_status = Index("GSI1", shop).sort(status, number)',
    ),
    LintRule(
        "ISO501",
        "a declaration that an engine does not have",
        "models",
        "You have asked for engines= that the program must run on. This one refuses the declaration or ignores it.",
        'Local("due")   # with engines = ["azure-table"]',
        "Follow the advice of the finding, or leave out the engine.",
        'Global("PK", "due")',
    ),
)

RULES: Final[Mapping[str, LintRule]] = {rule.code: rule for rule in _ALL}
"""The rules by their codes."""


def codes_of(given: str) -> frozenset[str]:
    """The codes that begin with a text, such as `ISO1`. Raises `UsageError` if there are none."""
    found = frozenset(code for code in RULES if code.startswith(given.upper()))
    if not found or not given:
        raise UsageError(f"{given!r} is not a code of lint; the codes are {', '.join(RULES)}")
    return found
