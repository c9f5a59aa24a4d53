"""A workload for the simulation that the demo shows: a music service whose chart is one hot key."""

from __future__ import annotations

from typing import Final

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, desc, field
from isotone.advisor.simulation import Workload, WorkloadCall

songs: Final = Table("songs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Song(Entity, table=songs):
    """A song; its artist's songs are sorted by how often they were played."""

    id: Attr[str] = field()
    artist: Attr[str] = field()
    title: Attr[str] = field()
    plays: Attr[int] = field(default=0, max=9_999_999_999)

    primary = Key("SONG", id).sort("INFO")
    by_plays = Index("GSI1", "ARTIST", artist).sort("PLAYS", desc(plays))


class Chart(Entity, table=songs):
    """How often songs were played today, all in one item."""

    day: Attr[str] = field()
    plays: Attr[int] = field(default=0)

    primary = Key("CHART", day).sort("TOTAL")


class Like(Entity, table=songs):
    """A listener likes a song."""

    listener: Attr[str] = field()
    song: Attr[str] = field()

    primary = Key("LISTENER", listener).sort("LIKE", song)


load: Final = Workload("a music service", tables=[songs])
listeners: Final = load.population("listener", 10_000_000, activity=0.7)
titles: Final = load.population("song", 2_000_000, popularity=0.9)
artists: Final = load.population("artist", 100_000, popularity=0.6)


@load.prepare
def make_the_chart(store: isotone.Store) -> None:
    """Write the item in which all plays are counted."""
    store.put(Chart(day="today"))


@titles.starts_with
def publish(call: WorkloadCall) -> None:
    """Write a song."""
    artist = call.draw(artists).id
    call.store.put(Song(id=call.member.id, artist=artist, title="A song of three minutes"))


@load.action(by=listeners, per_day=30)
def play(call: WorkloadCall) -> None:
    """Count a play of a song, and of all songs."""
    song = call.draw(titles)
    call.store.update(Song, Song.plays.add(1), id=song.id)
    call.store.update(Chart, Chart.plays.add(1), day="today")


@load.action(by=listeners, per_day=50)
def look_up(call: WorkloadCall) -> None:
    """Read a song."""
    call.store.get(Song, id=call.draw(titles).id)


@load.action(by=listeners, per_day=4)
def like(call: WorkloadCall) -> None:
    """Note that a listener likes a song."""
    call.store.put(Like(listener=call.member.id, song=call.draw(titles).id))


@load.action(by=listeners, per_day=3)
def read_likes(call: WorkloadCall) -> None:
    """Read what a listener likes."""
    call.store.page(Like.primary.where(Like.listener == call.member.id), size=25)
