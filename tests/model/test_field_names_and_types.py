"""A name or a type of a field works, or is refused when the class is defined, with what to write instead."""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import ipaddress
import pathlib
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, Field, HttpUrl, Json, SecretBytes, SecretStr

import isotone
from isotone import (
    AsyncStore,
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Store,
    Table,
    Transaction,
    computed,
    field,
)
from isotone.errors import UsageError, ValidationException
from isotone.model.declaring.declaration import PARAMETERS

OF_ENTITY = [name for name in vars(Entity) if not name.startswith("__")] + [
    "__init__",
    "__dict__",
    "_known",
]
FREE = [
    *(
        "consistent",
        "when",
        "entity",
        "key",
        "keys",
        "self",
        "cls",
        "target",
        "table",
        "cursor",
    ),
    *(
        "class_",
        "from_",
        "global_",
        "items",
        "values",
        "name",
        "attribute",
        "options",
        "wire",
        "path",
        "set",
    ),
    *(
        "add",
        "remove",
        "exists",
        "size",
        "contains",
        "between",
        "order",
        "place",
        "encode",
        "bind",
        "named",
    ),
    *(
        "type",
        "id",
        "limit",
        "select",
        "filter",
        "schema",
        "fields",
        "item",
        "_private",
        "annotation",
    ),
]


def entity_with(name: str, *, in_key: bool = False, **more: Any) -> Any:
    members: dict[str, Any] = {"pk": field(), name: field()}
    members["__annotations__"] = dict.fromkeys(members, Attr[str])
    sort = [members[name]] if in_key else []
    members["primary"] = Key("A", members["pk"]).sort("B", *sort)
    if more:
        members["__annotations__"] |= {"upper": Attr[str]}
    return type("Thing", (Entity,), members | more, table=Table("things"))


@pytest.mark.parametrize("name", OF_ENTITY)
@pytest.mark.parametrize("kind", ["field", "key"])
def test_a_name_of_every_entity_is_refused(name: str, kind: str) -> None:
    if kind == "field":
        with pytest.raises(UsageError, match=rf"'{name}' would hide .*field\(name='{name}'\)"):
            entity_with(name)
    else:
        with pytest.raises(UsageError, match=rf"key '{name}' would hide"):
            entity_with("other", **{name: Index("GSI1", "A").sort("B")})


@pytest.mark.parametrize("in_key", [False, True])
@pytest.mark.parametrize("name", FREE)
def test_any_other_name_works_everywhere(name: str, in_key: bool) -> None:
    if in_key and name in PARAMETERS:
        with pytest.raises(
            UsageError, match=rf"'{name}' of the primary key .*field\(name='{name}'\)"
        ):
            entity_with(name, in_key=in_key)
        return
    thing = entity_with(
        name, in_key=in_key, upper=computed(lambda each: getattr(each, name).upper())
    )
    about = getattr(thing, name)
    key = {"pk": "p"} | ({name: "v"} if in_key else {})
    with isotone.connect(":memory:") as store:
        store.create_tables(thing.__schema__.table)
        entity = store.put(thing(**{"pk": "p", name: "v"}))
        assert entity.to_dict() == {"pk": "p", name: "v", "upper": "V"}
        assert store.get(thing, **key) == entity == entity.replace(**{name: "v"})
        assert store.get_many(thing, [key]) == [entity]
        assert repr(entity) == f"Thing(pk='p', {name}='v', upper='V')"
        if in_key:
            store.move(thing, about.set("x"), **key)
            store.move(thing, about.set("v"), **(key | {name: "x"}))
        else:
            assert store.all(thing.primary.scan().filter(about == "v")) == [entity]
            assert store.update(thing, about.set("w"), when=about == "v", **key).upper == "W"
            assert store.upsert(thing, about.set("v"), **key) == entity
        with store.transaction() as tx:
            tx.delete(thing, **key)
        assert store.get(thing, **key) is None


@pytest.mark.parametrize("owner", [Store, AsyncStore, Transaction])
def test_every_parameter_beside_the_fields_of_a_key_is_refused_in_keys(owner: Any) -> None:
    for name, method in vars(owner).items():
        if name.startswith("_") or not callable(method):
            continue
        parameters = inspect.signature(method).parameters.values()
        if any(each.kind is each.VAR_KEYWORD and each.name == "key" for each in parameters):
            named = {
                each.name
                for each in parameters
                if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
            }
            assert named - {"self"} <= PARAMETERS, name


# Conditions in the class statement


def test_a_sparse_index_of_what_is_not_deleted() -> None:
    class Note(Entity, table=Table("notes", indexes={"GSI1": Global("a", "b")})):
        code: Attr[str] = field()
        deleted: Attr[bool] = field(default=False)

        primary = Key("N", code).sort("N")
        live = Index("GSI1", "N", when=~deleted).sort(code)

    with isotone.connect(":memory:") as store:
        store.create_tables(Note.__schema__.table)
        for code in "abc":
            store.put(Note(code=code, deleted=code == "b"))
        assert [note.code for note in store.all(Note.live.where())] == ["a", "c"]
        assert len(store.all(Note.primary.scan().filter(~Note.deleted))) == 2
        store.update(Note, Note.deleted.set(True), code="a", when=~Note.deleted)
        assert [note.code for note in store.all(Note.live.where())] == ["c"]
    with pytest.raises(UsageError, match="~code: only a bool"):
        _ = ~Note.code
    wrong: Any = Note.deleted
    with pytest.raises(
        UsageError, match="<field deleted> is not a condition; write deleted == True"
    ):
        _ = (Note.code == "a") & wrong
    wrong = False
    with pytest.raises(UsageError, match="is not a condition, and cannot be joined"):
        _ = (Note.code == "a") | wrong


def test_an_index_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"write Index\('GSI1', …\)"):

        class Row(Entity, table=Table("rows", indexes={"GSI1": Global("A", "B")})):
            status: Attr[str] = field()
            primary = Key("ROW", status).sort("ROW")
            by_status = Index("GSI1", "S", status).sort().was(Index(status).sort())  # type: ignore[arg-type] # the test


def test_what_is_not_a_condition_is_refused_with_what_to_write() -> None:
    flag: Any = field()
    flag.__set_name__(Entity, "deleted")
    wrong: Any
    for wrong in (flag is False, not 5, "deleted"):
        with pytest.raises(UsageError, match=r"Python itself evaluates `is`.*when=~deleted"):
            Index("GSI1", "N", when=wrong)
    with pytest.raises(UsageError, match="a field is not a condition; write when=deleted == True"):
        Index("GSI1", "N", when=flag)


# Types


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


class Word(enum.StrEnum):
    A = "a"
    B = "b"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Day(enum.Enum):
    FIRST = date(2020, 1, 1)
    LAST = date(2020, 12, 31)


class Pair(enum.Enum):
    NEAR = (0, 1)
    FAR = (5, 5)


class Share(enum.Enum):
    LITTLE = 0.1
    HALF = 0.5


class Mixed(enum.Enum):
    NOTHING = None
    ONE = 1
    TEXT = "1"


class Spot(NamedTuple):
    x: int
    name: str


@dataclasses.dataclass
class Car:
    plate: str
    seats: int | None = None


class Prefs(typing_extensions.TypedDict):
    theme: str


class Wide(BaseModel):
    texts: set[str] = Field(default_factory=set)
    levels: frozenset[Level] = frozenset()
    ids: set[UUID] = Field(default_factory=set)
    flags: set[bool] = Field(default_factory=set)
    url: HttpUrl = HttpUrl("https://example.com")
    secret: SecretStr = SecretStr("s")
    by_number: dict[int, timedelta] = Field(default_factory=dict)
    alias: int = Field(default=0, alias="Alias")


UUIDS = st.uuids()
SPANS = st.timedeltas(timedelta(-1000), timedelta(1000))
ROUND_TRIPS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (HttpUrl, st.sampled_from(["https://a.example/", "http://b.example/x?y=1"]).map(HttpUrl)),
    (AnyUrl, st.just(AnyUrl("ftp://example.com/x"))),
    (ipaddress.IPv4Address, st.ip_addresses(v=4)),
    (ipaddress.IPv6Address, st.ip_addresses(v=6)),
    (ipaddress.IPv4Network, st.just(ipaddress.IPv4Network("10.0.0.0/8"))),
    (SecretStr, st.text().map(SecretStr)),
    (SecretBytes, st.binary().map(SecretBytes)),
    (set, st.sets(st.text())),
    (collections.abc.Set[str], st.sets(st.text())),
    (pathlib.Path, st.sampled_from(["/a/b", "c", "."]).map(pathlib.Path)),
    (pathlib.PurePosixPath, st.just(pathlib.PurePosixPath("/a"))),
    (ZoneInfo, st.sampled_from(["UTC", "Europe/Brussels"]).map(ZoneInfo)),
    (re.Pattern[str], st.just(re.compile("a+"))),
    (Fraction, st.fractions()),
    (Number, st.sampled_from(Number)),
    (Word, st.sampled_from(Word)),
    (Right, st.sampled_from([Right(0), Right.READ, Right.READ | Right.WRITE])),
    (Day, st.sampled_from(Day)),
    (Pair, st.sampled_from(Pair)),
    (Share, st.sampled_from(Share)),
    (Mixed, st.sampled_from([Mixed.ONE, Mixed.TEXT])),
    (Literal[Level.LOW, Number.ONE, "x"], st.sampled_from([Level.LOW, Number.ONE, "x"])),
    (Spot, st.builds(Spot, st.integers(), st.text())),
    (Car, st.builds(Car, st.text())),
    (Prefs, st.fixed_dictionaries({"theme": st.text()})),
    (Annotated[int, Field(gt=0)], st.integers(1)),
    (pydantic.PositiveInt, st.integers(1)),
    (pydantic.ByteSize, st.integers(0)),
    (tuple[int, str], st.tuples(st.integers(), st.text())),
    (tuple[date, ...], st.lists(st.dates()).map(tuple)),
    (collections.deque[int], st.lists(st.integers()).map(collections.deque)),
    (Mapping[str, int], st.dictionaries(st.text(min_size=1), st.integers())),
    (Sequence[int], st.lists(st.integers())),
    (dict[int, Level], st.dictionaries(st.integers(), st.sampled_from(Level))),
    (dict[UUID, int], st.dictionaries(UUIDS, st.integers())),
    (set[Level], st.sets(st.sampled_from(Level))),
    (set[bool], st.sets(st.booleans())),
    (set[Optional[int]], st.sets(st.none() | st.integers())),  # noqa: UP045
    (frozenset[UUID], st.frozensets(UUIDS)),
    (list[set[str]], st.lists(st.sets(st.text()))),
    (dict[str, set[int]], st.dictionaries(st.text(min_size=1), st.sets(st.integers()))),
    (int | str, st.integers() | st.text()),
    (Car | None, st.none() | st.builds(Car, st.text())),
    (
        Wide,
        st.builds(
            Wide,
            texts=st.sets(st.text()),
            levels=st.frozensets(st.sampled_from(Level)),
            ids=st.sets(UUIDS),
            flags=st.sets(st.booleans()),
            by_number=st.dictionaries(st.integers(), SPANS),
            Alias=st.integers(),
        ),
    ),
]  # fmt: skip


def entity_of(annotation: Any) -> Any:
    members: dict[str, Any] = {"pk": field(), "value": field()}
    members["__annotations__"] = {"pk": Attr[str], "value": Attr[annotation]}
    members["primary"] = Key("A", members["pk"]).sort("B")
    return type("Thing", (Entity,), members, table=Table("things"))


@pytest.mark.parametrize(
    ("annotation", "values"), ROUND_TRIPS, ids=[str(each) for each, _ in ROUND_TRIPS]
)
def test_what_is_put_is_got(annotation: Any, values: st.SearchStrategy[Any]) -> None:
    thing = entity_of(annotation)
    store = isotone.connect(":memory:")
    store.create_tables(thing.__schema__.table)

    @given(values)
    def check(value: Any) -> None:
        entity = thing(pk="p", value=value)
        try:
            store.put(entity)
        except ValidationException:  # of a number that DynamoDB has no room for
            return
        read = store.get(thing, pk="p")
        assert read == entity
        assert type(read.value) is type(entity.value)
        if entity.value is not None:
            assert store.update(thing, thing.value.set(entity.value), pk="p") == entity

    check()


class TextOfMine(str):
    __slots__ = ()


class BytesOfMine(bytes):
    pass


class Thing:
    pass


class Forbidding(BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    a: int

    @pydantic.computed_field
    def double(self) -> int:
        return 2 * self.a


if typing.TYPE_CHECKING:
    OldDict: Any
else:

    class OldDict(typing.TypedDict):
        a: int


class Odd(enum.Enum):
    A = object()


REFUSED: list[tuple[Any, str]] = [
    (TextOfMine, r"values of type TextOfMine cannot be written.*NewType"),
    (BytesOfMine, r"values of type BytesOfMine cannot be written"),
    (bytearray, r"values of type bytearray cannot be written.*bytes"),
    (Thing, r"values of type Thing cannot be written.*a pydantic model, a dataclass"),
    (list[Thing], r"values of type Thing cannot be written"),
    (Callable[[], int], r"a function cannot be stored"),
    (type, r"a class cannot be stored"),
    (type[Thing], r"a class cannot be stored"),
    (Iterable[int], r"declare a list"),
    (pydantic.NaiveDatetime, r"declare datetime"),
    (pydantic.JsonValue, r"declare dict\[str, Any\]"),
    (Json, r"declare dict\[str, Any\]"),
    (list[Json[list[int]]], r"declare the parsed type"),
    (pydantic.ImportString, r"store its name"),
    (Forbidding, r"Forbidding writes its computed fields"),
    (datetime | date, r"datetime \| date are written alike, as S"),
    (UUID | str, r"UUID \| str are written alike, as S"),
    (int | timedelta, r"int \| timedelta are written alike, as N"),
    (Odd, r"object .*no counterpart in DynamoDB"),
    (None, r"no values"),
    (typing.Final[int], r"no values"),
]


@pytest.mark.parametrize(("annotation", "message"), REFUSED, ids=[str(each) for each, _ in REFUSED])
def test_what_could_not_be_read_back_is_refused_at_definition(
    annotation: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=rf"Thing: field 'value'.*{message}"):
        entity_of(annotation)


def test_a_typed_dict_that_pydantic_cannot_read_says_what_to_import() -> None:
    import sys

    if sys.version_info >= (3, 12):
        pytest.skip("Python's own TypedDict will do")
    with pytest.raises(UsageError, match=r"typing_extensions\.TypedDict"):
        entity_of(OldDict)


def test_a_type_that_is_defined_later_is_left_for_later() -> None:
    class Folder(BaseModel):
        name: str
        inside: list[Later] = Field(default_factory=list)

    thing = entity_of(Folder)

    class Later(BaseModel):
        size: int

    Folder.model_rebuild(_types_namespace={"Later": Later})
    with isotone.connect(":memory:") as store:
        store.create_tables(thing.__schema__.table)
        entity = store.put(
            thing(pk="p", value=Folder(name="a", inside=[Later(size=UTC is not None)]))
        )
        assert store.get(thing, pk="p") == entity
        assert isinstance(entity.value.inside[0].size, int)
        assert Decimal(entity.value.inside[0].size) == 1


def test_a_condition_that_a_sparse_index_implies_is_to_be_left_out() -> None:
    class Post(Entity, table=Table("posts", indexes={"GSI1": Global("a", "b")})):
        code: Attr[str] = field()
        deleted_at: Attr[datetime | None] = field(default=None)

        primary = Key("P", code).sort("P")
        live = Index("GSI1", "P", when=deleted_at == None).sort(code)  # noqa: E711

    with pytest.raises(
        UsageError, match=r"live has entries only for .*'deleted_at'; leave this one out"
    ):
        Post.live.where(Post.deleted_at.missing())


def test_a_field_by_itself_is_not_a_condition() -> None:
    class Invoice(Entity, table=Table("invoices")):
        number: Attr[int] = field(max=99)
        paid: Attr[bool] = field(default=False)

        primary = Key("INVOICE", number).sort("INVOICE")

    paid: Any = Invoice.paid
    number: Any = Invoice.number
    everything = Invoice.primary.scan()
    with isotone.connect(":memory:") as store:
        store.create_tables(Invoice.__schema__.table)
        for use in (
            lambda: everything.filter(paid),
            lambda: Invoice.match(paid, scan=True),
            lambda: store.load(everything).where(paid),
            lambda: store.put(Invoice(number=1), when=paid),
            lambda: store.delete_all(everything, when=paid),
            lambda: ~paid & paid,
            lambda: paid & ~paid,
            lambda: paid | ~paid,
        ):
            with pytest.raises(UsageError, match="write paid == True, or ~paid for the opposite"):
                use()
        with pytest.raises(
            UsageError, match="<field number> is not a condition; write number == …"
        ):
            everything.filter(number)
