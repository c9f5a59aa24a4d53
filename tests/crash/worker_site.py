"""What `isotone worker worker_site:journal` runs in the test of killed processes."""

from __future__ import annotations

import time

from isotone import Attr, Entity, Event, Key, Table, field
from isotone.structures import Context, Worker

site = Table("site", stream="NEW_IMAGE")


class Post(Entity, table=site):
    author: Attr[str] = field()
    number: Attr[int] = field(max=9_999)

    primary = Key("AUTHOR", author).sort("POST", number)


class Delivery(Entity, table=site):
    """Written under the post's own key: twice is as good as once."""

    author: Attr[str] = field()
    number: Attr[int] = field(max=9_999)

    primary = Key("READER", author).sort("DELIVERY", number)


class Journal(Entity, table=site):
    """Appended to: twice would be seen."""

    author: Attr[str] = field()
    numbers: Attr[list[int]] = field(default_factory=list)

    primary = Key("JOURNAL", author).sort("JOURNAL")


journal = Worker("journal", site)


@journal.on(Post, "inserted")
def note(event: Event[Post], context: Context) -> None:
    post = event.entity
    context.store.put(Delivery(author=post.author, number=post.number))
    with context.once() as together:
        together.update(Journal, Journal.numbers.append([post.number]), author=post.author)
    time.sleep(0.001)
