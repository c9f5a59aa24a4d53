"""Words in byte order, and names that are equal in any case.

Sort a list of words the same way everywhere, and find "banana" however it was typed. DynamoDB sorts text by
its UTF-8 bytes: capitals before small letters, `é` after `z`. A field with `case=` is normalized in its keys
and in queries; the entity keeps the original case.

    python examples/01_text_order.py [ADDRESS]
"""

from __future__ import annotations

import sys

import isotone
from isotone import Attr, Entity, Key, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall

words = Table("words", partition="book", sort="word")
names = Table("names")


class Word(Entity, table=words):
    book: Attr[str] = field()
    word: Attr[str] = field()

    primary = Key(book).sort(word)


class Fruit(Entity, table=names):
    name: Attr[str] = field(case="lower")

    primary = Key("FRUITS").sort("FRUIT", name)


class Station(Entity, table=names):
    name: Attr[str] = field(case="upper")

    primary = Key("STATIONS").sort("STATION", name)


class Street(Entity, table=names):
    name: Attr[str] = field(case="casefold")

    primary = Key("STREETS").sort("STREET", name)


# What many users would do: isotone simulate 01_text_order
load = Workload("dictionaries", tables=[words, names])
books = load.population("book", 100_000, activity=0.8)


@load.action(by=books, per_day=20)
def add_a_word(call: WorkloadCall) -> None:
    call.store.put(Word(book=call.member.id, word=f"word {call.chance.randrange(10**6)}"))


@load.action(by=books, per_day=100)
def open_the_book(call: WorkloadCall) -> None:
    call.store.page(Word.primary.where(Word.book == call.member.id), size=20)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(words, names)

        print("Words in UTF-8 byte order")
        for word in ["😀", "～", "é", "cherry", "apple", "Banana", "#1"]:
            store.put(Word(book="a", word=word))
        isotone.show(store.all(Word.primary.where(Word.book == "a")))

        print(
            "\nThree spellings, one item, whose name keeps the case that was given last: in lower case"
        )
        for name in ["banana", "BANANA", "Banana"]:
            store.put(Fruit(name=name))
            store.put(Station(name=name))
        for name in ["Hauptstraße", "HAUPTSTRASSE"]:
            store.put(Street(name=name))
        isotone.show(store.all(Fruit.primary.where()))
        print("\nIn upper case")
        isotone.show(store.all(Station.primary.where()))
        print("\nFolded, which knows more languages")
        isotone.show(store.all(Street.primary.where()))

        print("\nAsked for in any case")
        for name in ["Banana", "banana", "BANANA"]:
            found = store.all(Fruit.primary.where(Fruit.name == name))
            print(f"{name}: {', '.join(fruit.name for fruit in found)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
